package summary

import (
	"github.com/hopscope/hopscope/inference"
)

// maxFindings is how many findings the summary of a run keeps.
const maxFindings = 1000

// findings keeps the last state of findings, by their ids.
type findings map[uint64]inference.Finding

// keep takes the news of a window, and forgets the oldest ended findings of a long run.
func (f findings) keep(news []inference.Finding) {
	for i := range news {
		f[news[i].ID] = news[i]
	}
	for len(f) > maxFindings {
		oldest, at := int64(0), uint64(0)
		for id, x := range f {
			if x.End != 0 && (oldest == 0 || x.End < oldest) {
				oldest, at = x.End, id
			}
		}
		if oldest == 0 {
			return // all of them last; the detectors bound their number
		}
		delete(f, at)
	}
}

// open counts the findings that last, by kind and severity. Those that another one explains are not counted: one cause is one.
func (f findings) open() map[[2]string]int {
	n := map[[2]string]int{}
	for _, x := range f {
		if x.End == 0 && x.Cause == 0 {
			n[[2]string{x.Kind.String(), x.Severity.String()}]++
		}
	}
	return n
}
