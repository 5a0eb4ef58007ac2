package exporters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/inference/state"
)

// IPFIX is the settings for IPFIX and NetFlow 9, where an exporter's profile reads them.
type IPFIX struct {
	Enabled       bool          `yaml:"enabled" doc:"Read IPFIX and NetFlow 9 on every port whose profile has it (auto, ipfix)."`
	PathDelay     string        `yaml:"path_delay" doc:"Delay fields beside 530 to 533 of RFC 9951: auto adds 600 to 603 of pmacct, fluvia 521 to 528 (now TCP options at IANA), iana none. Huawei's are always read." oneof:"auto|fluvia|iana"`
	Sampling      []Sampling    `yaml:"sampling" doc:"Sampling rates of exporters that do not send them; the longest prefix wins."`
	Templates     int           `yaml:"templates" doc:"Most templates that are kept, of all exporters." range:"1..1000000"`
	ParkedSets    int           `yaml:"parked_sets" doc:"Data sets of an exporter that wait for their template; the oldest go first." range:"0..4096"`
	ParkedFor     time.Duration `yaml:"parked_for" doc:"How long a data set waits for its template." range:"1s..24h"`
	TemplatesFile string        `yaml:"templates_file" doc:"File of templates, for restarts. Empty is ipfix.templates beside the state file, if there is one."`
}

// Sampling is the sampling rate of the exporters of a network.
type Sampling struct {
	Prefix string `yaml:"prefix" doc:"Source addresses, as 10.1.0.0/16, or one alone."`
	Rate   uint32 `yaml:"rate" doc:"A report stands for so many packets." range:"1..4294967295"`
}

// Validate checks one entry.
func (s *Sampling) Validate() error {
	if _, err := parsePrefix(s.Prefix); err != nil {
		return fmt.Errorf("prefix: %q is neither a prefix such as 10.1.0.0/16 nor an address", s.Prefix)
	}
	return nil
}

// DefaultIPFIX returns settings that read everything that can be read.
func DefaultIPFIX() IPFIX {
	l := ipfix.DefaultLimits()
	return IPFIX{Enabled: true, PathDelay: "auto", Templates: l.Templates, ParkedSets: l.Parked, ParkedFor: l.ParkedFor}
}

// Options returns the reading of templates.
func (c *IPFIX) Options() (o ipfix.Options) {
	o.Delays = map[string]ipfix.Numbering{"fluvia": ipfix.Fluvia, "iana": ipfix.Strict}[c.PathDelay]
	for _, s := range c.Sampling {
		if p, err := parsePrefix(s.Prefix); err == nil {
			o.Rates = append(o.Rates, ipfix.Rate{Prefix: p, Rate: s.Rate})
		}
	}
	return o
}

// Store makes what remembers exporters, nil where nothing is to be read.
func (c *IPFIX) Store() *ipfix.Store {
	if !c.Enabled {
		return nil
	}
	l := ipfix.DefaultLimits()
	l.Templates, l.Parked, l.ParkedFor = c.Templates, c.ParkedSets, c.ParkedFor
	l.Elements = max(l.Elements, 64*l.Templates)
	return ipfix.NewStore(l, c.Options())
}

// The file of templates: what [templatesState] writes, and the CRC-32C of that in four bytes.
const (
	templatesVersion = 1
	// TemplatesMost is the longest file of templates that is read.
	TemplatesMost = 256 << 20
)

var errTemplates = errors.New("the checksum is wrong")

func templatesState(list *[]ipfix.Saved) func(*state.Coder) {
	return func(c *state.Coder) {
		c.Version(templatesVersion, templatesVersion)
		n := len(*list)
		state.UintTo(c, "templates", 1<<24, &n)
		for i := 0; i < n && c.OK(); i++ {
			var t ipfix.Saved
			if !c.Reading() {
				t = (*list)[i]
			}
			c.Addr("address", &t.Source.Addr)
			state.Fixed(c, "port", &t.Source.Port, &t.Version, &t.ID)
			state.Fixed(c, "domain", &t.Domain)
			c.Flag("options", &t.Options)
			c.Blob("template", &t.Raw)
			if c.Check("template", len(t.Raw) <= math.MaxUint16); c.Reading() && c.OK() {
				*list = append(*list, t)
			}
		}
	}
}

// AppendTemplates appends templates as a file keeps them.
func AppendTemplates(b []byte, list []ipfix.Saved) []byte {
	return append(b, SumTemplates(state.Append(nil, templatesState(&list)))...)
}

// SumTemplates is a file with its checksum behind it.
func SumTemplates(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b[:len(b):len(b)], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// ReadTemplates reads templates that a file kept.
func ReadTemplates(b []byte) (list []ipfix.Saved, err error) {
	n := len(b) - 4
	if n < 0 {
		return nil, errTemplates
	}
	if binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], crc32.MakeTable(crc32.Castagnoli)) {
		return nil, errTemplates
	}
	if err := state.Read("templates of IPFIX", b[:n], templatesState(&list)); err != nil {
		return nil, err
	}
	return list, nil
}
