package fleet

import (
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Statement holds the statistics of exporters from a worker of reports for one run. They cover the reports that the run
// sent one by one and whose window it has not marked as sent. A run that was killed gives none itself. Its exporters
// have numbered these reports, so that they would count as missing and as stored.
//
// A statement is a record of its own beside the parts of its sender, and stands for no reports. It is left out as soon
// as the run's own part of the window is there. So it matters neither which of the two comes first nor whether the
// other one comes at all.
type Statement struct {
	Run  Source          // its Seq is 0
	Seen *window.Partial // exporters and their numbers
}

// statementSeq distinguishes the numbers of statements from those of the parts of the same sender.
const statementSeq = 1 << 63

// Statements makes the records of statements for a window that ends at the label end, and appends them to dst. The
// argument first is the number of the first statement within the window. Statements that are too long for a record, or
// have no number left, are left out: their numbers stay missing.
func (p *Publisher) Statements(dst []Out, list []Statement, end int64, first int) ([]Out, error) {
	for n := range list {
		if first+n >= 1<<8 {
			return dst, nil
		}
		s := &list[n]
		s.Seen.Split(&p.cfg.Slicer, p.slices)
		for i, slice := range p.slices {
			if len(slice.Exporters()) == 0 {
				continue
			}
			value, err := p.codec.Encode(nil, slice)
			if err != nil {
				return dst, err
			}
			if len(value) > p.cfg.MaxSize {
				continue
			}
			h := p.head(Part, i, end, value)
			h.Seq, h.Parts, h.Sources = statementSeq|pseudoSeq(end, p.cfg.Window, first+n), 1, []Source{s.Run}
			dst = append(dst, Out{i, h, value})
		}
	}
	return dst, nil
}

// statedFor is the run that a record is a statement for, and zero for other records. It reports false for what cannot
// be one.
func (h *Head) statedFor() (of runKey, ok bool) {
	if h.Kind != Part || h.Boot != 0 || len(h.Sources) == 0 {
		return runKey{}, true
	}
	s := h.Sources[0]
	return runKey{s.From, s.Boot}, len(h.Sources) == 1 && s.From != "" && s.Boot != 0 && !isPseudo(s.From) && h.Seq >= statementSeq
}

// name distinguishes a run from all others, also of the same collector, as package cross reads it.
func (k runKey) name() string {
	if k.boot == 0 {
		return k.from
	}
	return k.from + "/" + strconv.FormatUint(k.boot, 16)
}

// addStatement adds a statement for a run, of which some records may be there: exporters that they have are left out.
func (s *sum) addStatement(value []byte, of runKey, own map[runKey]map[inference.ExporterKey]bool) error {
	var seen window.Partial
	if err := s.codec.Decode(&seen, value); err != nil {
		return err
	}
	s.one.Reset()
	has := own[of]
	s.one.AddExporters(slices.DeleteFunc(slices.Clone(seen.Exporters()), func(e inference.ExporterStats) bool { return has[e.ExporterKey] }))
	for i := range seen.Numbers() {
		if n := &seen.Numbers()[i]; !has[n.ExporterKey] {
			s.one.AddNumbers(n)
		}
	}
	s.sum.Merge(s.one)
	return nil
}
