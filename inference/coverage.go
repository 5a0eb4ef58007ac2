package inference

import (
	"fmt"
	"strings"
	"time"
)

// Judgement states whether the values of a hop, or of a path of probes, in a window were compared with what is usual
// for it.
type Judgement uint8

// The judgements.
const (
	NotKnown Judgement = iota // not known here: the detectors are elsewhere
	Judged
	TooYoung // fewer windows with enough records than it takes to learn the usual values
	TooFew   // fewer records in the window than are compared, or no value in them
)

func (j Judgement) String() string {
	return [...]string{"", "judged", "too-young", "too-few"}[min(j, TooFew)]
}

// Coverage counts the hops and the paths of probes of a window, and those that were judged. Nothing follows for the
// others from a window without findings.
type Coverage struct {
	Seen   int // hops with records in the window
	Judged int
	Young  int // TooYoung
	Few    int // TooFew
	// NoLatency counts those that were judged without any latency: their devices report queues, utilisation or counters
	// alone.
	NoLatency int

	Paths       int // of probes between agents
	PathsJudged int // of these, those whose delay was, or of which no delay is measured
	// PathsUnknown counts paths of a plan whose losses were not judged, or not all of them: what one of their two agents
	// reported had no counterpart by the other one. Losses and damage of other paths are judged.
	PathsUnknown int

	MinRecords uint64        // of a window that are enough
	Warmup     int           // windows that are enough
	Window     time.Duration // length of windows
	Times      uint64        // half of the Few would have twice MinRecords in windows so many times as long; 0 without any
}

// Enough returns a sufficient length of windows. Half of those with too few records now would have twice as many
// records as are enough, since numbers of records vary. It is 0 without any such window, and if the length would be
// more than an hour.
func (c *Coverage) Enough() time.Duration {
	if c.Window <= 0 || c.MinRecords <= 1 || c.Times > uint64(time.Hour/c.Window) {
		return 0
	}
	return time.Duration(c.Times) * c.Window
}

// Text returns what was judged, and what it takes to judge the rest: "2250 hops seen, 0 judged: 2250 had fewer than 5
// records in this window of 1s; windows of 10s would be long enough". It is empty where nothing was seen.
func (c *Coverage) Text() string {
	if c.Seen == 0 {
		return c.pathText()
	}
	text := fmt.Sprintf("%s seen, %d judged", plural(c.Seen, "hop"), c.Judged)
	var why []string
	if c.Young > 0 {
		why = append(why, fmt.Sprintf("%d had fewer than %s to learn from", c.Young, plural(c.Warmup, "window")))
	}
	if c.Few > 0 {
		few := fmt.Sprintf("%d had fewer than %s in a window of %v", c.Few, plural(int(c.MinRecords), "record"), c.Window)
		if c.MinRecords <= 1 {
			few = fmt.Sprintf("%d had no value to compare", c.Few)
		} else if enough := c.Enough(); enough > 0 {
			few += fmt.Sprintf("; windows of %v would be long enough", enough)
		}
		why = append(why, few)
	}
	if c.NoLatency > 0 {
		why = append(why, fmt.Sprintf("of %d no latency is known", c.NoLatency))
	}
	if len(why) > 0 {
		text += ": " + strings.Join(why, ", ")
	}
	if c.Paths > 0 {
		text += "; " + c.pathText()
	}
	return text
}

// pathText returns what was judged of paths of probes, "" where none was seen.
func (c *Coverage) pathText() string {
	judged := "all of them"
	if c.PathsUnknown > 0 {
		judged = fmt.Sprintf("%d: of the others only one of two agents reported", c.Paths-c.PathsUnknown)
	}
	switch {
	case c.Paths == 0:
		return ""
	case c.PathsJudged == c.Paths && c.PathsUnknown == 0:
		return plural(c.Paths, "path") + " of probes seen, and all judged"
	case c.PathsJudged == c.Paths:
		return plural(c.Paths, "path") + " of probes seen, and losses judged on " + judged
	}
	return fmt.Sprintf("%s of probes seen, and losses judged on %s; of %d delays are not, which takes %s with answers", plural(c.Paths, "path"), judged,
		c.Paths-c.PathsJudged, plural(c.Warmup, "window"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
