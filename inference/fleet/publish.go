package fleet

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Record is a record of a topic of the fleet.
type Record struct {
	Offset int64
	Head   Head
	Value  []byte // as in the topic
	// Time is the time of its append to the log, by the clock of the brokers, ns since 1970; 0 if that is not known.
	Time int64
}

// Out is a record to be appended to a partition.
type Out struct {
	Partition int
	Head      Head
	Value     []byte
}

// PublisherConfig holds the name and the settings of a publisher.
type PublisherConfig struct {
	From string // name of the collector
	// Boot is drawn for each run. 0 is for those whose records are numbered by their windows, see [pseudoSeq].
	Boot    uint64
	Slicer  window.Slicer
	Window  int64 // length, ns
	MaxSize int   // of a value as in the topic; one that would be longer is cut into several parts
}

// Publisher names the records of a run and makes those of its windows. It has one user at a time.
type Publisher struct {
	cfg     PublisherConfig
	codec   *Codec
	windows []numbering // by partition
	reports []numbering
	slices  []*window.Partial
}

// numbering is how far a run has come in a partition: the number of its last record, and the reports of all of them.
type numbering struct{ seq, reports uint64 }

// next names the next record, which stands for some reports of its own.
func (s *numbering) next(h *Head, own uint64) {
	s.seq++
	s.reports += own
	h.Seq, h.Total = s.seq, s.reports
}

// NewPublisher begins a run.
func NewPublisher(cfg PublisherConfig) *Publisher {
	n := cfg.Slicer.Slices()
	p := &Publisher{cfg: cfg, codec: NewCodec(0, window.Limits{}), windows: make([]numbering, n), reports: make([]numbering, n)}
	if p.cfg.MaxSize <= 0 {
		p.cfg.MaxSize = 900_000
	}
	for range n {
		p.slices = append(p.slices, &window.Partial{})
	}
	return p
}

// Boot is the number of the run.
func (p *Publisher) Boot() uint64 { return p.cfg.Boot }

// Redraw begins a new run under another number, when another run was found to use that of this one.
func (p *Publisher) Redraw(boot uint64) {
	p.cfg.Boot = boot
	clear(p.windows)
	clear(p.reports)
}

// pseudoSeq returns the number of a record of a sender with Boot 0, which numbers its records by the window. The
// arguments name record n, from 0 and below 256, of the window that ends at end.
func pseudoSeq(end, window int64, n int) uint64 { return uint64(end/window)<<8 + uint64(n)&0xff + 1 }

// head begins a head of a window that ends at end.
func (p *Publisher) head(kind Kind, slice int, end int64, value []byte) Head {
	return Head{
		Kind: kind, From: p.cfg.From, Boot: p.cfg.Boot, Slice: uint32(slice), Start: end - p.cfg.Window, End: end, Sum: Sum(value),
	}
}

// Label returns the end of the window in which a time lies. The end is excluded: a window from 10 to 20 contains 10,
// and not 20.
func Label(at, window int64) int64 {
	n := at - at%window
	if n > at { // before 1970
		n -= window
	}
	return n + window
}

// Window makes the records of a window that ends at the label end, one or more for each slice, and appends them to dst.
// The argument part is the partial window; it is only read. The argument raw holds the number of reports of the window
// that were sent to each partition of reports, nil if there were none. The argument first is the number of the first
// record within the window, for collectors with Boot 0; it is 0 for others.
func (p *Publisher) Window(dst []Out, part *window.Partial, end int64, raw []uint64, first int) ([]Out, error) {
	begin := len(dst)
	part.Split(&p.cfg.Slicer, p.slices)
	for i, slice := range p.slices {
		from := len(dst)
		var err error
		if dst, err = cut(dst, p.codec, slice, p.head(Part, i, end, nil), p.cfg.MaxSize, nil); err != nil {
			return dst[:begin], err
		}
		records := dst[from:]
		number(records)
		if p.cfg.Boot == 0 && first+len(records) > 1<<8 {
			return dst[:begin], fmt.Errorf("slice %d of the window to %d: there are no numbers left for more records", i, end)
		}
		for n := range records {
			h := &records[n].Head
			records[n].Partition = i
			if p.cfg.Boot == 0 {
				h.Seq = pseudoSeq(end, p.cfg.Window, first+n)
			} else {
				p.windows[i].next(h, h.Reports)
			}
		}
		records[len(records)-1].Head.Raw = raw
	}
	return dst, nil
}

// maxParts is into how many parts a slice is cut at most.
const maxParts = 1 << 10

// Reports names a record of n reports, whose value was made already, for a partition of reports.
func (p *Publisher) Reports(partition int, end int64, n uint64, value []byte) Out {
	h := p.head(Reports, partition, end, value)
	h.Reports = n
	p.reports[partition].next(&h, n)
	return Out{partition, h, value}
}

// Mark makes the record of a partition of reports that all n reports of a window were sent there.
func (p *Publisher) Mark(partition int, end int64, n uint64) Out {
	h := p.head(Mark, partition, end, nil)
	h.Reports = n
	p.reports[partition].next(&h, 0)
	return Out{Partition: partition, Head: h}
}

// EncodeSlice makes the records of a merged slice for the one partition of the topic series, and appends them to dst.
// None has a value longer than most.
func EncodeSlice(dst []Out, c *Codec, from string, slice int, m *Merged, most int) ([]Out, error) {
	begin := len(dst)
	dst, err := cut(dst, c, m.Partial, Head{
		Kind: Slice, From: from, Slice: uint32(slice), Start: m.Start, End: m.End, Revision: m.Revision,
		Sources: m.Sources, Missing: m.Missing, Dead: m.Dead,
	}, most, func(h *Head, piece *window.Partial) {
		h.Owners = m.ownersOf(piece)
	})
	if err != nil {
		return dst, err
	}
	number(dst[begin:])
	return dst, nil
}

// ownersOf returns the owners of the exporters of a piece of the slice.
func (m *Merged) ownersOf(piece *window.Partial) []uint32 {
	if piece == m.Partial {
		return m.Owners
	}
	all, out := exporterKeys(m.Partial), []uint32{}
	for _, k := range exporterKeys(piece) {
		if i, ok := slices.BinarySearchFunc(all, k, inference.ExporterKey.Compare); ok && i < len(m.Owners) {
			out = append(out, m.Owners[i])
		}
	}
	return out
}

// number writes into the records of a slice of a window how many they are.
func number(records []Out) {
	for n := range records {
		records[n].Head.Part, records[n].Head.Parts = uint32(n), uint32(len(records))
	}
}

// cut makes the records of a partial: one, or as many as it takes for no value to be longer than most. The function
// finish may be nil.
func cut(dst []Out, c *Codec, part *window.Partial, h Head, most int, finish func(h *Head, piece *window.Partial)) ([]Out, error) {
	from := len(dst)
	for n := 1; ; n *= 2 {
		pieces := []*window.Partial{part}
		if n > 1 {
			pieces = make([]*window.Partial, n)
			for i := range pieces {
				pieces[i] = &window.Partial{}
			}
			// Under another seed than that of slices, or all of one would go to the same piece.
			s := window.NewSlicer(uint64(n), n)
			part.Split(&s, pieces)
		}
		longest := 0
		for _, piece := range pieces {
			value, err := c.Encode(nil, piece)
			if err != nil {
				return dst[:from], err
			}
			longest = max(longest, len(value))
			h.Reports, h.Sum = piece.Reports, Sum(value)
			if finish != nil {
				finish(&h, piece)
			}
			dst = append(dst, Out{Head: h, Value: value})
		}
		if longest <= most {
			return dst, nil
		}
		if n >= maxParts {
			return dst[:from], fmt.Errorf("slice %d of the window to %d: a value of %d bytes cannot be cut to the %d that a record may have", h.Slice, h.End, longest, most)
		}
		dst = dst[:from]
	}
}
