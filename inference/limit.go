package inference

import "fmt"

// Limit is the count of what one limit of the settings left out since the start of the program.
type Limit struct {
	Setting string // to raise
	N       uint64
	What    string // behind the number: what it counts, and what is not done with it
}

// LeftOut returns a sentence for each limit that left something out: "36 exporters are not watched: raise
// exporters.tracking.max_exporters".
func LeftOut(list []Limit) (sentences []string) {
	for _, l := range list {
		if l.N > 0 {
			sentences = append(sentences, fmt.Sprintf("%s %s: raise %s", Count(l.N), l.What, l.Setting))
		}
	}
	return sentences
}
