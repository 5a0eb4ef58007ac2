package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hopscope/hopscope/inference/state"
)

// Keys of the roster: that of [Params], and what those of members and of orders to them begin with.
const (
	ParamsKey = "fleet"
	redraw    = "/redraw"
)

// The roles of members.
const (
	Collector = "collector" // sends what it saw
	Consumer  = "consumer"  // merges what was sent, and stores it
)

// MemberKey is the key of the roster under which a member publishes its record.
func MemberKey(role, name string) string { return role + "/" + name }

// RedrawKey is the key of the roster under which a collector is asked to draw another boot. The value is a [Redraw].
func RedrawKey(name string) string { return MemberKey(Collector, name) + redraw }

// Redraw is the notice to a collector that a record of this boot came under a number that had been merged with other bytes, as when
// the collector was restored from a snapshot. It goes on under another boot.
type Redraw struct {
	Boot uint64 `json:"boot,string"`
}

// Member is the record of a collector or a consumer in the roster, under [MemberKey]. The last record of a member stays there when it
// ends, because its counts are part of the fleet's ledger.
type Member struct {
	Role    string `json:"role"`
	Name    string `json:"name"` // differs from that of every other member of the role
	Boot    uint64 `json:"boot,string"`
	Version string `json:"version"`    // of the program
	Start   int64  `json:"start_ns"`   // of the run
	Updated int64  `json:"updated_ns"` // when this was said
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
	Run    *Balance  `json:"run,omitempty"`        // of a collector: reports of this run; Stored is what Kafka confirmed
	All    *Balance  `json:"all_runs,omitempty"`   // the same over all runs, see [Balance.After]
	Parts  []Account `json:"partitions,omitempty"` // of a consumer

	// Windows and Reports, of a collector, are the reports of this run that Kafka has confirmed, by partition of these topics, as
	// Head.Total counts them.
	Windows []uint64 `json:"sent_windows,omitempty"`
	Reports []uint64 `json:"sent_reports,omitempty"`

	Rebalances uint64 `json:"rebalances"` // that a consumer lived through
}

// Process says which process a member is.
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

// Account is the account of the reports of one partition of the topics windows or reports, over all of its life. It is kept in the
// partition's checkpoint and moves with it from consumer to consumer, so that a window that is merged again after a crash counts
// once. Of several accounts of a partition the one with the highest Generation and Offset is right.
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
	// Passed, of a partition of reports, are those of Taken that stand in parts of windows which Kafka confirmed. They are
	// taken once more there.
	Passed uint64 `json:"passed,omitempty"`
	// Stored, of a partition of windows, are those of Taken that a store has confirmed, by store. Without a store they are
	// those that were merged, under the empty name.
	Stored map[string]uint64 `json:"stored,omitempty"`
	// Refused, of a partition of windows, are those of Taken that a store refused for good, by store.
	Refused map[string]uint64 `json:"refused,omitempty"`

	// Recovered, of a partition of reports, are those of Taken that former programs have among Down of the partitions of windows, too:
	// their collector was killed before the end of their window, and Kafka had them already.
	Recovered uint64 `json:"recovered,omitempty"`
	// Unread are reports of records that are not there, or cannot be read, as the numbers of others of their run show, by collector.
	// They are not among Taken. What the collector itself could not send is among them.
	Unread map[string]uint64 `json:"unread,omitempty"`

	// Removed is the last time at which retention was found to have removed unread records, ns since 1970; 0 for never.
	Removed int64 `json:"removed_ns,omitempty"`

	// Down, of a partition of windows, are reports that were sent while no collector took them, or that were taken by one which was
	// killed, as the numbers of exporters show over all collectors. They are not among Taken.
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
	droppedNoStore   = "no-store" // merged by a consumer that does not know the store
)

// Bounds of what a member may say.
const (
	MaxMember  = 1 << 20 // bytes
	maxList    = 64      // problems, pages, stores
	maxSay     = 1 << 10 // bytes of a text
	maxStages  = 32
	maxReports = 1 << 48 // of one member, so that a fleet's sum fits
)

// memberError says what in a record of the roster was refused, and at which byte where that is known.
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
	if name == "" || len(name) > MaxName {
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
		said := *m
		said.Rate, m = 0, &said
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // it consists of texts and finite numbers
	}
	return append(b, data...)
}

// ReadMember reads what a member wrote under key. Fields that it does not know, of a later version, are passed over; what
// it knows is refused where it is longer or larger than a member would have it, or does not add up.
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
	if len(m.Windows) > maxSlices || len(m.Reports) > maxSlices {
		return "sent", errLong
	}
	if len(m.Parts) > 2*maxSlices+1 {
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
	if len(s) > maxSay {
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
	if a.Topic != Windows && a.Topic != RawReports && a.Topic != Series {
		return state.ErrRange
	}
	if a.Partition >= maxSlices || a.Offset < 0 || a.Window < 0 || a.Removed < 0 || a.Recovered > a.Taken || a.Taken > maxReports || a.Down > maxReports || dropped > a.Taken || a.Passed > a.Taken-dropped {
		return state.ErrRange
	}
	if len(a.Unread) > MaxMembers {
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

// Names of topics, without the prefix.
const (
	Windows    = "windows"
	RawReports = "reports"
	Series     = "series"
)

// After returns the balance with which the run after b begins: what was on its way then is dropped as [droppedDown], apart from the
// reports that are carried over in a spool. Add the run's own balance without them (see [Balance.Add]).
func (b *Balance) After(carried uint64) Balance {
	next := Balance{Sink: b.Sink, Received: b.Received, Stored: b.Stored, Dropped: maps.Clone(b.Dropped)}
	flight, _ := total(b.InFlight)
	if carried > flight { // the spool was filled after this was said
		next.Received += carried - flight
		flight = carried
	}
	if lost := flight - carried; lost > 0 {
		addStage(&next.Dropped, droppedDown, lost)
	}
	if carried > 0 {
		next.Received -= carried // they are in the run's own
	}
	return next
}

// Add adds o to b.
func (b *Balance) Add(o *Balance) {
	b.Received += o.Received
	b.Stored += o.Stored
	for stage, n := range o.InFlight {
		addStage(&b.InFlight, stage, n)
	}
	for stage, n := range o.Dropped {
		addStage(&b.Dropped, stage, n)
	}
}

func addStage(stages *map[string]uint64, stage string, n uint64) {
	if *stages == nil {
		*stages = map[string]uint64{}
	}
	(*stages)[stage] += n
}

// books are the ledger of a whole fleet.
type books struct {
	// Balances has one entry a store of the consumers, ordered by name; there is one without a name as long as no consumer has
	// reported any. Each of them adds up, and all have the same Received.
	Balances []Balance
	// Ahead is the number of reports that consumers took before their collector accounted for them, because its last record is older
	// than theirs, or because it was killed before it wrote one. They are in Received all the same.
	Ahead uint64
	// Lost is, by collector, the number of reports that its kills and absences have cost, as far as it knows. What other collectors
	// took instead is among it; the balances have what no collector took.
	Lost map[string]uint64
}

// Ledger adds up what the members say: received = stored + in flight + dropped over the whole fleet. What Kafka has and no
// consumer has taken is in flight. Members speak at different times, so that what is in flight is as exact as they are
// frequent; the sum is exact all the same.
func Ledger(members []*Member) books {
	var sent, all Balance // all collectors; Stored is what Kafka confirmed
	sum := books{Lost: map[string]uint64{}}
	for _, m := range members {
		b := balanceOf(m)
		if m.Role != Collector || b == nil {
			continue
		}
		sent.Add(b)
		if n := b.Dropped[droppedDown]; n > 0 {
			sum.Lost[m.Name] = n
		}
	}
	// Another collector may have taken what one missed: that shows only where their numbers are merged.
	sent.Received -= sent.Dropped[droppedDown]
	delete(sent.Dropped, droppedDown)
	accounts := Accounts(members)
	broken := unread(members, accounts)

	// All stores have this in common.
	all = Balance{Received: sent.Received, InFlight: sent.InFlight, Dropped: sent.Dropped}
	down, recovered := uint64(0), uint64(0)
	kafka, raw := int64(sent.Stored)-int64(broken), int64(0)
	if broken > 0 {
		addStage(&all.Dropped, DroppedBroken, broken)
	}
	stores := map[string]bool{}
	for _, a := range accounts {
		dropped, _ := total(a.Dropped)
		switch a.Topic {
		case RawReports:
			// What was passed is on its way through Kafka again; the rest is in the consumer or was dropped.
			recovered += a.Recovered
			raw += int64(a.Taken - a.Passed - dropped)
			kafka -= int64(a.Taken - a.Passed)
		case Windows:
			kafka -= int64(a.Taken)
			down += a.Down
			for store := range a.Stored {
				stores[store] = true
			}
		}
		for stage, n := range a.Dropped {
			addStage(&all.Dropped, stage, n)
		}
	}
	if down -= min(down, recovered); down > 0 {
		all.Received += down
		addStage(&all.Dropped, droppedDown, down)
	}
	if kafka < 0 {
		sum.Ahead = all.ahead(uint64(-kafka))
		kafka = 0
	}
	if len(accounts) > 0 || kafka > 0 {
		addStage(&all.InFlight, inKafka, uint64(kafka))
	}
	if raw > 0 {
		addStage(&all.InFlight, inReports, uint64(raw))
	}
	if len(stores) == 0 {
		stores[""] = true
	}
	if len(stores) > 1 {
		delete(stores, "") // of partitions that have had no store since the others have some
	}
	for _, store := range slices.Sorted(maps.Keys(stores)) {
		b := Balance{Sink: store, Received: all.Received, InFlight: maps.Clone(all.InFlight), Dropped: maps.Clone(all.Dropped)}
		for _, a := range accounts {
			if a.Topic != Windows {
				continue
			}
			dropped, _ := total(a.Dropped)
			rest := a.Taken - dropped
			stored, known := a.Stored[store]
			switch {
			case known:
				b.Stored += stored
				addStage(&b.InFlight, inConsumer, rest-stored-a.Refused[store])
				if n := a.Refused[store]; n > 0 {
					addStage(&b.Dropped, droppedRejected, n)
				}
			case len(a.Stored) == 0: // none has confirmed yet
				addStage(&b.InFlight, inConsumer, rest)
			default:
				addStage(&b.Dropped, droppedNoStore, rest)
			}
		}
		sum.Balances = append(sum.Balances, b)
	}
	return sum
}

// unread are the reports of records that are not there, beside those that their collectors could not send, which say so.
func unread(members []*Member, accounts []*Account) (n uint64) {
	missing := map[string]uint64{}
	for _, a := range accounts {
		for name, n := range a.Unread {
			missing[name] += n
		}
	}
	for _, m := range members {
		if b := balanceOf(m); m.Role == Collector && b != nil {
			for _, stage := range []string{"sink-queue", "spool", "not-encodable", "rejected"} {
				missing[m.Name] -= min(b.Dropped[stage], missing[m.Name])
			}
		}
	}
	for _, left := range missing {
		n = min(n+min(left, maxReports), maxReports)
	}
	return n
}

// balanceOf is the balance over all runs of a member, or what it has instead.
func balanceOf(m *Member) *Balance {
	if m.All != nil {
		return m.All
	}
	return m.Run
}

// ahead takes n reports out of what collectors have in flight, the last stages first: a consumer has taken them already. What is not
// there was received after the last account of their collectors, and is returned.
func (b *Balance) ahead(n uint64) uint64 {
	for _, stage := range []string{"spool", "sink-queue", "window", "shard-queue", "ring"} {
		part := min(n, b.InFlight[stage])
		if part > 0 {
			b.InFlight[stage] -= part
			n -= part
		}
	}
	b.Received += n
	return n
}

// Accounts returns the right account of every partition that a member reports, ordered by topic and partition.
func Accounts(members []*Member) []*Account {
	type key struct {
		topic     string
		partition uint32
	}
	newest := map[key]*Account{}
	for _, m := range members {
		for i := range m.Parts {
			a := &m.Parts[i]
			k := key{a.Topic, a.Partition}
			if old := newest[k]; old == nil || a.newer(old) {
				newest[k] = a
			}
		}
	}
	list := slices.Collect(maps.Values(newest))
	slices.SortFunc(list, func(a, b *Account) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition) - int(b.Partition)
	})
	return list
}

// newer reports whether a overrides b, an account of the same partition.
func (a *Account) newer(b *Account) bool {
	if a.Generation != b.Generation {
		return a.Generation > b.Generation
	}
	return a.Offset > b.Offset
}
