package guess

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
)

// Printer writes the reports of frames, each in the dialect of its sender.
type Printer struct {
	W       io.Writer
	Append  func(dst []byte, frame uint64, r *decode.Report) []byte // with its newline
	Decoder *demux.Router
	Watch   *Watch
	Place   func([]*decode.Report) // nodes into their sites; nil leaves them as they are
	Known   func(link uint16) bool // whether decoders can walk frames of a link type
	// Foreign writes a frame without telemetry, its layers and the byte where reading stopped, with its newline; nil
	// leaves it out.
	Foreign func(dst []byte, frame uint64, s *Sample, layers []string, stopped int) []byte

	remarks Remarks
	buf     []byte
	batch   decode.Batch
	outer   packet.Packet

	frames, reports, malformed, without uint64
	short, blind                        uint64            // frames of which the capture holds a part, and of those, such that may have held anything
	harmed                              uint64            // reports that end where their frame is cut
	foreign                             map[uint16]uint64 // frames by link type that is not known
}

// Frame adds the reports of a frame with its number to those that [Printer.Flush] writes.
func (p *Printer) Frame(number uint64, s Sample) {
	out := &p.batch
	p.count(s.Link, p.Decoder.Frame(out, s.Link, s.Data, s.Length, s.Time))
	if len(s.Data) < s.Length {
		p.short++
		if len(out.Reports) == 0 && p.Decoder.Blind(s.Data, s.Length) {
			p.blind++
		}
	}
	s.To.Number, s.To.Only = p.Decoder.LastPort()
	p.Watch.Look(p.Decoder.Profile, s, out.Reports)
	if p.Foreign != nil && len(out.Reports) == 0 {
		p.outer.Frame(s.Link, s.Data, s.Length)
		layers, stopped := p.outer.Layers()
		kept := s // only a frame without reports costs an allocation
		p.buf = p.Foreign(p.buf, number, &kept, layers, min(stopped, len(s.Data)))
	}
	if p.Place != nil {
		p.Place(out.Reports)
	}
	for _, report := range out.Reports {
		if report.Err.Reason == 0 {
			p.remarks.See(report)
		}
		if report.Remarks&decode.RemarkShort != 0 {
			p.harmed++
		}
		if report.Err.Reason != 0 {
			p.malformed++
		}
		p.buf = p.Append(p.buf, number, report)
	}
	out.Reset()
}

// Heading is written before the first report.
func (p *Printer) Heading(text []byte) { p.buf = append(p.buf, text...) }

// Frames counts the frames.
func (p *Printer) Frames() uint64 { return p.frames }

func (p *Printer) count(link uint16, reports int) {
	p.frames++
	p.reports += uint64(reports)
	if reports == 0 {
		p.without++
	}
	if !p.Known(link) {
		if p.foreign == nil {
			p.foreign = map[uint16]uint64{}
		}
		p.foreign[link]++
	}
}

// Dialects are those that explain frames which the profile cannot read, one for each sender.
func (p *Printer) Dialects() []Finding {
	p.Watch.Finish()
	return p.Watch.Findings()
}

// Remarks are those about reports that were read.
func (p *Printer) Remarks() []Remark { return p.remarks.List() }

// Flush writes the added frames.
func (p *Printer) Flush() error {
	if len(p.buf) == 0 {
		return nil
	}
	_, err := p.W.Write(p.buf)
	p.buf = p.buf[:0]
	// The path adds nothing to the operation.
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if err != nil {
		return fmt.Errorf("write the reports: %w", err)
	}
	return nil
}

// Summary returns "6331 frames, 278 reports, 0 errors".
func (p *Printer) Summary(all bool) string {
	s := fmt.Sprintf("%d frame%s, %d report%s, %d error%s", p.frames, plural(p.frames), p.reports, plural(p.reports), p.malformed, plural(p.malformed))
	if all {
		s += fmt.Sprintf(", %d without telemetry", p.without)
	}
	if p.blind+p.harmed > 0 {
		s += fmt.Sprintf("; the capture holds only a part of %d frame%s (tcpdump -s 0 holds all)", p.short, plural(p.short))
	}
	if p.blind > 0 {
		s += fmt.Sprintf(", and %d end before what they may have held", p.blind)
	}
	if !all && p.reports+p.blind == 0 && p.frames > 0 && len(p.foreign) == 0 && len(p.Watch.Findings()) == 0 {
		s += "; none holds telemetry for this profile: --all prints the layers of each"
	}
	for _, link := range slices.Sorted(maps.Keys(p.foreign)) {
		s += fmt.Sprintf("; %d of link type %d, which is not read", p.foreign[link], link)
	}
	return s
}

func plural(n uint64) string {
	if n == 1 {
		return ""
	}
	return "s"
}
