package roster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/state"
)

// Keys of the roster: that of [Params], and what those of members and of orders to them begin with.
const (
	ParamsKey = "fleet"
	redraw    = "/redraw"
)

// The roles of members.
const (
	Collector = "collector" // sends its partial windows and reports
	Consumer  = "consumer"  // merges what was sent, and stores it
)

// MemberKey is the key of the roster under which a member publishes its record.
func MemberKey(role, name string) string { return role + "/" + name }

// RedrawKey is the key of the roster under which a collector is asked to draw another boot. The value is a [Redraw].
func RedrawKey(name string) string { return MemberKey(Collector, name) + redraw }

// Redraw is the notice to a collector that a record of this boot came under a number that had been merged with other
// bytes. That happens when the collector was restored from a snapshot. It goes on under another boot.
type Redraw struct {
	Boot uint64 `json:"boot,string"`
}

// Member is the record of a collector or a consumer in the roster, under [MemberKey]. The last record of a member stays
// there when it ends, because its counts are part of the fleet's ledger.
type Member struct {
	Role    string `json:"role"`
	Name    string `json:"name"` // differs from that of every other member of the role
	Boot    uint64 `json:"boot,string"`
	Version string `json:"version"`    // of the program
	Start   int64  `json:"start_ns"`   // of the run
	Updated int64  `json:"updated_ns"` // time of this record
	Left    bool   `json:"left"`       // it ended in order and is not waited for

	Process *Process `json:"process,omitempty"` // that it is, for others that want its name

	Since  int64     `json:"since_ns"`             // label of the first window that a collector sends, of this run
	Window int64     `json:"window_ns"`            // label of the last window that it has sent, or stored
	Rate   float64   `json:"reports_per_second"`   // in that window
	Lag    uint64    `json:"lag"`                  // records that a consumer has not read yet
	Spool  uint64    `json:"spool_bytes"`          // on disk, waiting for Kafka
	Pages  []string  `json:"pages,omitempty"`      // where its own page is
	Faults []string  `json:"problems,omitempty"`   // a sentence each
	Stores []string  `json:"stores,omitempty"`     // of a consumer
	Run    *Balance  `json:"run,omitempty"`        // of a collector: reports of this run; Stored counts those that Kafka confirmed
	All    *Balance  `json:"all_runs,omitempty"`   // the same over all runs, see [Balance.After]
	Parts  []Account `json:"partitions,omitempty"` // of a consumer

	// Windows and Reports, of a collector, are the reports of this run that Kafka has confirmed, by partition of these
	// topics, as Head.Total counts them.
	Windows []uint64 `json:"sent_windows,omitempty"`
	Reports []uint64 `json:"sent_reports,omitempty"`

	Rebalances uint64 `json:"rebalances"` // that a consumer lived through
}

// Process identifies the process of a member.
type Process struct {
	PID   int    `json:"pid"`
	Host  string `json:"host"`            // name of its machine
	Space string `json:"space,omitempty"` // in which its number is its own until the machine starts anew; empty where that is not known
}

// Balance is the account of reports by place: Received = Stored + InFlight + Dropped, at every moment.
type Balance struct {
	Sink     string            `json:"sink,omitempty"` // the store; empty where there is none, and what was merged counts as stored
	Received uint64            `json:"received"`
	Stored   uint64            `json:"stored"`
	InFlight map[string]uint64 `json:"in_flight,omitempty"` // by stage
	Dropped  map[string]uint64 `json:"dropped,omitempty"`   // by stage
}

// Account is the account of the reports of one partition of the topics windows or reports, over all of its life. It is
// kept in the partition's checkpoint and moves with it from consumer to consumer. So a window that is merged again
// after a crash counts once. Of several accounts of a partition the one with the highest Generation and Offset is
// right.
type Account struct {
	Topic      string `json:"topic"` // "windows" or "reports", without the prefix
	Partition  uint32 `json:"partition"`
	Generation int64  `json:"generation"` // of the group, when the checkpoint was written
	Offset     int64  `json:"offset"`     // of the input up to which it holds
	Held       bool   `json:"held"`       // the member has the partition now
	Window     int64  `json:"window_ns"`  // label of the last window that closed here
	Open       uint32 `json:"open"`       // windows that have begun and are not closed
	Lag        uint64 `json:"lag"`        // records

	Taken uint64 `json:"taken"` // reports of the records that were taken, each once
	// Dropped are those of Taken that end here, before any store, by stage: see the constants.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	// Passed, of a partition of reports, are those of Taken that stand in parts of windows which Kafka confirmed. They
	// are taken once more there.
	Passed uint64 `json:"passed,omitempty"`
	// Stored, of a partition of windows, are those of Taken that a store has confirmed, by store. Without a store they
	// are those that were merged, under the empty name.
	Stored map[string]uint64 `json:"stored,omitempty"`
	// Refused, of a partition of windows, are those of Taken that a store refused for good, by store.
	Refused map[string]uint64 `json:"refused,omitempty"`

	// Recovered, of a partition of reports, counts those of Taken that former programs also have in Down of the
	// partitions of windows. Their collector was killed before the end of their window, and Kafka had them already.
	Recovered uint64 `json:"recovered,omitempty"`
	// Unread counts by collector the reports of records that are missing or cannot be read, as the numbers of other
	// records of their run show. They are not among Taken. Reports that the collector itself could not send are among
	// them.
	Unread map[string]uint64 `json:"unread,omitempty"`

	// Removed is the last time at which retention was found to have removed unread records, ns since 1970; 0 for never.
	Removed int64 `json:"removed_ns,omitempty"`

	// Down, of a partition of windows, counts reports that were sent while no collector took them, or that a killed one
	// had taken. The numbers of exporters over all collectors show them. They are not among Taken.
	Down uint64 `json:"down,omitempty"`

	Late       uint64 `json:"late"`       // parts that came behind the close of their window and were merged all the same
	Duplicates uint64 `json:"duplicates"` // records that came again and were left out
	Conflicts  uint64 `json:"conflicts"`  // records with the number of another one
}

// Stages of a fleet's ledger, beside those of a collector.
const (
	inKafka    = "kafka"    // in flight: Kafka has them, and no consumer has merged them
	inReports  = "reports"  // in flight: read by a consumer one by one, not yet in a window that Kafka confirmed
	inConsumer = "consumer" // in flight: merged, waiting for a store

	DroppedLate     = "late"     // came when their window was beyond correction
	DroppedConflict = "conflict" // under a number that other bytes have
	DroppedBroken   = "broken"   // in records that could not be read
	DroppedFull     = "full"     // there was no room for them
	// DroppedRetention were in records that retention removed before a consumer had read them.
	DroppedRetention = "retention"
	droppedDown      = "down"     // were on their way in a collector that was killed
	droppedRejected  = "rejected" // a store refused their points
	droppedNoStore   = "no-store" // merged by a consumer without the store
)

// Bounds of the record of a member.
const (
	MaxMember  = 1 << 20 // bytes
	maxList    = 64      // problems, pages, stores
	maxText    = 1 << 10 // bytes of a text
	maxStages  = 32
	maxReports = 1 << 48 // of one member, so that a fleet's sum fits
)

// memberError is the error of a record of the roster, with the field and, where it is known, the offset.
type memberError struct {
	Key    string
	Field  string
	Offset int64 // -1 where the field as a whole is meant
	Err    error
}

func (e *memberError) Error() string {
	s := fmt.Sprintf("roster: record %.80q: %s", e.Key, e.Field)
	if e.Offset >= 0 {
		s += fmt.Sprintf(" at byte %d", e.Offset)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *memberError) Unwrap() error { return e.Err }

// The reasons for which a member's word is refused, beside those of heads.
var (
	errJSON    = errors.New("is no JSON of the kind that belongs there")
	errLong    = errors.New("is longer than it may be")
	errMember  = errors.New("is no name: letters, digits and . _ - , at most 253 of them")
	errKey     = errors.New("stands under the key of another one")
	errBalance = errors.New("does not add up")
)

// CheckName returns why a member cannot have the name, or nil: it is part of keys, of metrics and of file names.
func CheckName(name string) error {
	if name == "" || len(name) > fleet.MaxName {
		return errMember
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return errMember
		}
	}
	return nil
}

// Append appends the JSON of m to b. A rate that is no number is left out.
func (m *Member) Append(b []byte) []byte {
	if math.IsNaN(m.Rate) || math.IsInf(m.Rate, 0) {
		sent := *m
		sent.Rate, m = 0, &sent
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // it consists of texts and finite numbers
	}
	return append(b, data...)
}

// ReadMember reads the record of a member under key. Unknown fields, of a later version, are passed over. Known ones
// are refused where they are longer or larger than a member would write, or do not add up.
func ReadMember(key string, value []byte) (*Member, error) {
	fail := func(field string, offset int64, err error) (*Member, error) {
		return nil, &memberError{key, field, offset, err}
	}
	role, name, _ := strings.Cut(key, "/")
	switch {
	case role != Collector && role != Consumer:
		return fail("role", -1, state.ErrRange)
	case CheckName(name) != nil:
		return fail("name", -1, errMember)
	case len(value) > MaxMember:
		return fail("value", MaxMember, errLong)
	}
	m := &Member{}
	if err := readJSON(value, m); err != nil {
		return fail("value", err.offset, err.err)
	}
	if m.Role != role || m.Name != name {
		return fail("name", -1, errKey)
	}
	if field, err := m.check(); err != nil {
		return fail(field, -1, err)
	}
	return m, nil
}

type jsonError struct {
	offset int64
	err    error
}

// readJSON reads one value, and nothing behind it.
func readJSON(b []byte, v any) *jsonError {
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(v); err != nil {
		at := d.InputOffset()
		var kind *json.UnmarshalTypeError
		var syntax *json.SyntaxError
		if errors.As(err, &kind) {
			at = kind.Offset
		} else if errors.As(err, &syntax) {
			at = syntax.Offset
		}
		return &jsonError{at, fmt.Errorf("%w: %.200s", errJSON, err.Error())}
	}
	if rest := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return &jsonError{int64(len(b) - len(rest)), errJSON}
	}
	return nil
}

// check names the first field that no member would have so.
func (m *Member) check() (string, error) {
	texts := func(field string, list []string) (string, error) {
		if len(list) > maxList {
			return field, errLong
		}
		for _, s := range list {
			if err := checkText(s); err != nil {
				return field, err
			}
		}
		return "", nil
	}
	if err := checkText(m.Version); err != nil {
		return "version", err
	}
	if p := m.Process; p != nil && (checkText(p.Host) != nil || checkText(p.Space) != nil) {
		return "process", errLong
	}
	if m.Rate < 0 || m.Rate > maxReports {
		return "reports_per_second", state.ErrRange
	}
	for _, t := range []struct {
		field string
		at    int64
	}{{"start_ns", m.Start}, {"updated_ns", m.Updated}, {"since_ns", m.Since}, {"window_ns", m.Window}} {
		if t.at < 0 {
			return t.field, state.ErrRange
		}
	}
	for field, list := range map[string][]string{"pages": m.Pages, "problems": m.Faults, "stores": m.Stores} {
		if field, err := texts(field, list); err != nil {
			return field, err
		}
	}
	for field, b := range map[string]*Balance{"run": m.Run, "all_runs": m.All} {
		if b == nil {
			continue
		}
		if err := b.check(); err != nil {
			return field, err
		}
	}
	if len(m.Windows) > fleet.MaxSlices || len(m.Reports) > fleet.MaxSlices {
		return "sent", errLong
	}
	if len(m.Parts) > 2*fleet.MaxSlices+1 {
		return "partitions", errLong
	}
	for i := range m.Parts {
		if err := m.Parts[i].check(); err != nil {
			return "partitions", err
		}
	}
	return "", nil
}

func checkText(s string) error {
	if len(s) > maxText {
		return errLong
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return state.ErrRange
	}
	return nil
}

// total adds up stages, and refuses those that no ledger has.
func total(stages map[string]uint64) (sum uint64, err error) {
	if len(stages) > maxStages {
		return 0, errLong
	}
	for name, n := range stages {
		if len(name) > maxList || checkText(name) != nil {
			return 0, errLong
		}
		if n > maxReports {
			return 0, state.ErrRange
		}
		sum += n
	}
	return sum, nil
}

func (b *Balance) check() error {
	flight, err := total(b.InFlight)
	if err != nil {
		return err
	}
	dropped, err := total(b.Dropped)
	if err != nil {
		return err
	}
	switch {
	case checkText(b.Sink) != nil:
		return errLong
	case b.Received > maxReports || b.Stored > maxReports:
		return state.ErrRange
	case b.Received != b.Stored+flight+dropped:
		return errBalance
	}
	return nil
}

func (a *Account) check() error {
	dropped, err := total(a.Dropped)
	if err != nil {
		return err
	}
	if a.Topic != fleet.Windows && a.Topic != fleet.RawReports && a.Topic != fleet.Series {
		return state.ErrRange
	}
	if a.Partition >= fleet.MaxSlices || a.Offset < 0 || a.Window < 0 || a.Removed < 0 || a.Recovered > a.Taken || a.Taken > maxReports || a.Down > maxReports || dropped > a.Taken || a.Passed > a.Taken-dropped {
		return state.ErrRange
	}
	if len(a.Unread) > fleet.MaxMembers {
		return errLong
	}
	for name, n := range a.Unread {
		if CheckName(name) != nil || n > maxReports {
			return state.ErrRange
		}
	}
	if len(a.Stored) > maxStages || len(a.Refused) > maxStages {
		return errLong
	}
	for store, n := range a.Stored {
		if checkText(store) != nil {
			return errLong
		}
		if n > a.Taken-dropped || a.Refused[store] > a.Taken-dropped-n {
			return errBalance
		}
	}
	for store, n := range a.Refused {
		if _, known := a.Stored[store]; !known && n > 0 {
			return errBalance
		}
	}
	return nil
}
