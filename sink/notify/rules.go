package notify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/flock"
)

// Rules lists the findings that operators have acknowledged, muted or accepted.
type Rules struct {
	Acknowledged []Acknowledgement `yaml:"acknowledged,omitempty"`
	Mutes        []Mute            `yaml:"mutes,omitempty"`
	Accepted     []Acknowledgement `yaml:"accepted,omitempty"` // findings, whose level is normal from then on
}

// Acknowledgement marks findings that were open at a time as known: they are not repeated. Findings have other ids in
// the next run of the program, so an acknowledgement names the alert.
type Acknowledgement struct {
	Alert string    `yaml:"alert"` // a [Key] as text
	By    string    `yaml:"by,omitempty"`
	Note  string    `yaml:"note,omitempty"`
	At    time.Time `yaml:"at"`
}

// Mute keeps findings of some element or kind from being sent in some time. A part that is left out matches
// everything.
type Mute struct {
	Element string        `yaml:"element,omitempty" doc:"Muted element: node 7, interface 7:3, link 7-9, exporter 10.0.0.1, route 10.1.0.0/16. A node includes its interfaces and links. Empty is everything."`
	Kind    string        `yaml:"kind,omitempty" doc:"Kind of findings, such as high-latency. Empty is all."`
	From    string        `yaml:"from,omitempty" doc:"Begin, as 2026-11-22T22:00:00Z. Empty is at once."`
	Until   string        `yaml:"until,omitempty" doc:"End, in the same form. Empty is never."`
	Every   time.Duration `yaml:"every,omitempty" doc:"Interval of repetition: 24h every day, 168h every week. 0 is never." range:"0s..8760h"`
	By      string        `yaml:"by,omitempty" doc:"Name of its author."`
	Note    string        `yaml:"note,omitempty" doc:"Why."`
}

// maxRules bounds the file, which an operator or a program wrote.
const (
	maxRules     = 1024
	maxRulesFile = 1 << 20
)

// mute is a [Mute] ready for use.
type mute struct {
	element     inference.Element
	kind        inference.Kind
	from, until int64 // ns since 1970; 0 where it has no end
	every       int64
}

// Validate returns the errors in the mute.
func (m *Mute) Validate() error {
	_, err := m.compile()
	return err
}

func (m *Mute) compile() (out mute, err error) {
	var errs []error
	if out.element, err = inference.ParseElement(m.Element); err != nil {
		errs = append(errs, fmt.Errorf("element: %w", err))
	}
	if m.Kind != "" {
		if out.kind, err = inference.ParseKind(m.Kind); err != nil {
			errs = append(errs, fmt.Errorf("kind: %w", err))
		}
	}
	moment := func(name, text string) int64 {
		if text == "" {
			return 0
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is no time such as 2026-11-22T22:00:00Z", name, text))
			return 0
		}
		return t.UnixNano()
	}
	out.from, out.until, out.every = moment("from", m.From), moment("until", m.Until), int64(m.Every)
	switch {
	case len(errs) > 0:
	case m.From != "" && m.Until != "" && out.until <= out.from:
		errs = append(errs, errors.New("until: is not behind from"))
	case m.Every < 0:
		errs = append(errs, errors.New("every: is negative"))
	case m.Every > 0 && (m.From == "" || m.Until == ""):
		errs = append(errs, errors.New("every: needs from and until, which are its first time"))
	case m.Every > 0 && out.until-out.from > out.every:
		errs = append(errs, errors.New("every: is shorter than the time from from to until"))
	}
	return out, errors.Join(errs...)
}

// active reports whether the mute holds at a time.
func (m *mute) active(now int64) bool {
	if now < m.from {
		return false
	}
	if m.every > 0 {
		return (now-m.from)%m.every < m.until-m.from
	}
	return m.until == 0 || now < m.until
}

// covers reports whether the mute is about findings of a kind and an element.
func (m *mute) covers(kind inference.Kind, of inference.Element) bool {
	return (m.kind == 0 || m.kind == kind) && within(m.element, of)
}

// within reports whether e is of or a part of it. A node contains its interfaces, its links and the reports that it
// sends. A link contains the interfaces of both ends, as far as their numbers are known. A prefix contains the
// prefixes within it and the flows to it.
func within(e, of inference.Element) bool {
	if e == (inference.Element{}) || e == of {
		return true
	}
	switch e.Kind {
	case inference.NodeElement:
		switch of.Kind {
		case inference.InterfaceElement:
			return of.Node == e.Node
		case inference.LinkElement:
			return of.Node == e.Node || of.Peer == e.Node
		case inference.ExporterElement:
			return of.Node == e.Node && !of.Nameless
		}
	case inference.LinkElement:
		if of.Kind == inference.InterfaceElement {
			return of.Node == e.Node && of.EgressIf == e.EgressIf || of.Node == e.Peer && of.EgressIf == e.PeerIf
		}
		return of.Kind == inference.LinkElement && e.EgressIf == 0 && e.PeerIf == 0 && of.Node == e.Node && of.Peer == e.Peer
	case inference.ExporterElement:
		return of.Kind == inference.ExporterElement && of.Addr == e.Addr && e.Nameless && e.HWID == 0
	case inference.RouteElement:
		p, q := e.Prefix(), of.Prefix()
		switch {
		case !p.IsValid():
		case of.Kind == inference.FlowElement:
			return p.Contains(of.Flow.DstAddr())
		case q.IsValid():
			return p.Bits() <= q.Bits() && p.Contains(q.Addr())
		}
	}
	return false
}

// compiled are rules ready for use.
type compiled struct {
	acknowledged map[string]int64 // the latest of a key
	mutes        []mute
}

func (r *Rules) compile() (*compiled, error) {
	c := &compiled{acknowledged: map[string]int64{}}
	if n := len(r.Acknowledged) + len(r.Mutes) + len(r.Accepted); n > maxRules {
		return nil, fmt.Errorf("%d rules: at most %d are read", n, maxRules)
	}
	var errs []error
	for i := range r.Acknowledged {
		a := &r.Acknowledged[i]
		if a.Alert == "" || a.At.IsZero() {
			errs = append(errs, fmt.Errorf("acknowledged %d: needs alert and at", i+1))
			continue
		}
		c.acknowledged[a.Alert] = max(c.acknowledged[a.Alert], a.At.UnixNano())
	}
	for i := range r.Accepted {
		if a := &r.Accepted[i]; a.Alert == "" || a.At.IsZero() {
			errs = append(errs, fmt.Errorf("accepted %d: needs alert and at", i+1))
		}
	}
	for i := range r.Mutes {
		m, err := r.Mutes[i].compile()
		if err != nil {
			errs = append(errs, fmt.Errorf("mutes %d: %w", i+1, err))
		}
		c.mutes = append(c.mutes, m)
	}
	return c, errors.Join(errs...)
}

// Match returns the acknowledgement and the mute that hold at a time for a finding that began at another, or nil.
func (r *Rules) Match(f *inference.Finding, began, now time.Time) (a *Acknowledgement, m *Mute) {
	key, e := Key(f), subjectOf(f)
	for i := range r.Acknowledged {
		if x := &r.Acknowledged[i]; x.Alert == key && !x.At.Before(began) {
			a = x
		}
	}
	for i := range r.Mutes {
		if c, err := r.Mutes[i].compile(); err == nil && c.active(now.UnixNano()) && c.covers(f.Kind, e) {
			m = &r.Mutes[i]
		}
	}
	return a, m
}

// Same reports whether another mute is of the same element and kind, and comes again as this one does.
func (m *Mute) Same(o Mute) bool {
	a, err := m.compile()
	b, err2 := o.compile()
	return err == nil && err2 == nil && a.element == b.element && a.kind == b.kind && a.every == b.every
}

// ReadRules reads a file of rules. One that is not there holds none.
func ReadRules(path string) (*Rules, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Rules{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRulesFile+1))
	if err != nil {
		return nil, err
	}
	return parseRules(path, b)
}

// parseRules reads rules; name is that of the file, for errors.
func parseRules(name string, b []byte) (*Rules, error) {
	r := &Rules{}
	if len(b) > maxRulesFile {
		return nil, fmt.Errorf("%s: is longer than %d bytes", name, maxRulesFile)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return r, nil
	}
	if err := guard(b); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := yaml.UnmarshalWithOptions(b, r, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if _, err := r.compile(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// What a file of rules may consist of.
const (
	maxTokens = 1 << 16 // of maxRules rules with every key
	maxDepth  = 32      // of lists and mappings in one another
)

// guard refuses files that no rules need and the decoder cannot handle. The decoder recurses for each list in a list,
// and panics for a tag in place of a list. Its time grows with the square of some counts.
func guard(b []byte) error {
	count, depth, entries, line := 0, 0, 0, 0
	for _, t := range lexer.Tokenize(string(b)) {
		if t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		switch t.Type {
		case token.CommentType:
			continue
		case token.AnchorType, token.AliasType, token.TagType, token.DirectiveType, token.MergeKeyType, token.MappingKeyType:
			return fmt.Errorf("line %d: anchors, aliases, tags, directives, merges and complex keys have no place among rules", line)
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			entries++
		}
		if count++; count > maxTokens {
			return fmt.Errorf("line %d: more than %d words and signs", line, maxTokens)
		}
		if depth > maxDepth || entries > maxDepth {
			return fmt.Errorf("line %d: more than %d lists and mappings in one another", line, maxDepth)
		}
	}
	return nil
}

// Drop leaves out mutes that have ended, and acknowledgements and acceptances of findings that are older than a time.
func (r *Rules) Drop(now time.Time, acknowledgedBefore time.Time) {
	r.Mutes = slices.DeleteFunc(r.Mutes, func(m Mute) bool {
		c, err := m.compile()
		return err == nil && c.every == 0 && c.until != 0 && c.until < now.UnixNano()
	})
	old := func(a Acknowledgement) bool { return a.At.Before(acknowledgedBefore) }
	r.Acknowledged, r.Accepted = slices.DeleteFunc(r.Acknowledged, old), slices.DeleteFunc(r.Accepted, old)
}

// Change reads a file of rules, changes them and replaces the file, so that a reader sees either the old or the new
// one. Concurrent changes wait for each other.
func Change(path string, change func(*Rules) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the link stays
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	r, err := ReadRules(path)
	if err != nil {
		return err
	}
	if err := change(r); err != nil {
		return err
	}
	if _, err := r.compile(); err != nil {
		return err
	}
	b, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	return replace(path, 0o644, func(w io.Writer) error { _, err := w.Write(append([]byte(rulesHead), b...)); return err })
}

// replace is replaced by tests of a disk that fails.
var replace = flock.Replace

const rulesHead = "# What hopscope findings ack, accept, mute and unmute wrote. It may be edited; comments are lost at the next change.\n"
