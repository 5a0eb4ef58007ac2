package sink

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
)

// Limit is the count of what one limit of the settings left out since the start of the program.
type Limit struct {
	Setting string // to raise
	N       uint64
	What    string // behind the number: what it counts, and what is not done with it
}

// Limited is a writer of windows or points whose own settings limit what it takes. Limits lists all of them, also
// those that left nothing out. It may be called at any time.
type Limited interface{ Limits() []Limit }

// LeftOut returns a sentence for each limit that left something out: "36 exporters are not watched: raise
// exporters.tracking.max_exporters".
func LeftOut(list []Limit) (sentences []string) {
	for _, l := range list {
		if l.N > 0 {
			sentences = append(sentences, fmt.Sprintf("%s %s: raise %s", inference.Count(l.N), l.What, l.Setting))
		}
	}
	return sentences
}
