package findings

import (
	"context"
	_ "embed" // weights
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// The channels of a cell. Values are in deviations from what the cell usually has.
const (
	queueNow     = iota // 99th percentile of the queue
	queueMean           // mean of three windows
	latencyNow          // 99th percentile of the latency
	latencyMean         // mean of three windows
	absentMean          // part of three windows without a report, of a cell that usually has some
	channels            // number of them
	patch        = 9    // cells of the kernel: a cell with its neighbours in the picture
	poolAt       = patch * channels
	backAt       = poolAt + 2*channels // of the other direction
	biasAt       = backAt + channels
	inputs       = biasAt + 1
	usualWindows = 60  // time constant of what is usual
	youngWindows = 30  // before a cell is judged
	clip         = 6.0 // deviations
	leastSpread  = .1  // of logarithms
	endAfter     = 5   // windows below the threshold
)

// kernel is a convolution of 3 x 3 cells and the means of the row and the column of a cell, followed by a logistic
// function: as small as a detector on pictures can be.
type kernel struct {
	Weights   []float64 `json:"weights"`
	Threshold float64   `json:"threshold"`
}

//go:embed picture.json
var learntKernel []byte

func newKernel() (k kernel) {
	if err := json.Unmarshal(learntKernel, &k); err != nil || len(k.Weights) != inputs {
		panic(fmt.Sprintf("picture.json holds no kernel of %d weights: %v", inputs, err)) // it is embedded
	}
	return k
}

// cell is a direction of a link in the picture.
type cell struct {
	hop         inference.HopKey
	row, column int
	mean, dev   [2]float64    // of the logarithms of queue and latency
	seen        int           // windows with values
	missing     float64       // mean share of windows without
	past        [3][3]float64 // queue, latency and absence of the last windows
	x           [channels]float64
	warm, calm  int // windows in a row above and below the threshold
	open        bool
}

// film follows the pictures of a network, window by window.
type film struct {
	n       int
	cells   []cell
	at      map[inference.HopKey]int
	grid    []int // cell of a row and column, -1 for none
	windows int
}

func newFilm(n *emu.Network) *film {
	g := n.Graph()
	spots, pods, planes := make([]atlas.Spot, g.NumNodes()), g.Pods(), g.Planes()
	for v := range spots {
		tier := map[topo.Tier]int{topo.Edge: 1, topo.Aggregation: 2, topo.Core: 3}[g.Tier(v)]
		spots[v] = atlas.Spot{Tier: tier, Pod: pods[v], Plane: planes[v]}
	}
	row := make([]int, len(spots))
	for at, v := range atlas.Order(spots, nil) {
		row[v] = at
	}
	f := &film{n: len(spots), at: map[inference.HopKey]int{}, grid: slices.Repeat([]int{-1}, len(spots)*len(spots))}
	for i := range g.NumInterfaces() {
		v, w := g.Node(i), g.Neighbor(i)
		if w < 0 {
			continue
		}
		hop := inference.HopKey{Node: n.NodeID(v), EgressIf: uint32(g.Port(i))}
		f.at[hop], f.grid[row[v]*f.n+row[w]] = len(f.cells), len(f.cells)
		f.cells = append(f.cells, cell{hop: hop, row: row[v], column: row[w]})
	}
	return f
}

// add takes the next window.
func (f *film) add(w *inference.Window) {
	f.windows++
	now := make([]*inference.HopStats, len(f.cells))
	for i := range w.Hops {
		if c, ok := f.at[w.Hops[i].HopKey]; ok {
			now[c] = &w.Hops[i]
		}
	}
	for i := range f.cells {
		f.cells[i].add(now[i])
	}
}

// add takes what a cell has in a window, nil for nothing.
func (c *cell) add(h *inference.HopStats) {
	c.past[0], c.past[1] = c.past[1], c.past[2]
	c.past[2] = [3]float64{}
	var x [2]float64
	present := h != nil && h.Latency.Count > 0
	if present {
		x = [2]float64{math.Log(float64(h.Queue.P99) + queueFloor), math.Log(float64(h.Latency.P99) + float64(fullPacket))}
	}
	young := c.seen < youngWindows
	for q := range x {
		if present && !young {
			c.past[2][q] = max(-clip, min(clip, (x[q]-c.mean[q])/(c.dev[q]+leastSpread)))
		}
	}
	if !present && c.missing < .1 && !young {
		c.past[2][2] = 1
	}
	rate := max(1./usualWindows, 1/float64(c.seen+1))
	if !c.open {
		if present {
			for q := range x {
				d := x[q] - c.mean[q]
				if !young {
					d = max(-clip*(c.dev[q]+leastSpread), min(clip*(c.dev[q]+leastSpread), d))
				}
				c.mean[q] += rate * d
				c.dev[q] += rate * (math.Abs(d) - c.dev[q])
			}
			c.missing -= rate * c.missing
			c.seen++
		} else {
			c.missing += rate * (1 - c.missing)
		}
	}
	third := func(q int) float64 { return (c.past[0][q] + c.past[1][q] + c.past[2][q]) / 3 }
	c.x = [channels]float64{queueNow: c.past[2][0], queueMean: third(0), latencyNow: c.past[2][1], latencyMean: third(1), absentMean: third(2)}
}

// input writes what the kernel sees of each cell into in.
func (f *film) input(in [][inputs]float64) {
	rows, columns := make([][channels + 1]float64, f.n), make([][channels + 1]float64, f.n)
	for i := range f.cells {
		c := &f.cells[i]
		for k, v := range c.x {
			rows[c.row][k] += v
			columns[c.column][k] += v
		}
		rows[c.row][channels]++
		columns[c.column][channels]++
	}
	for i := range f.cells {
		c := &f.cells[i]
		x := &in[i]
		*x = [inputs]float64{biasAt: 1}
		for k := range patch {
			row, column := c.row+k/3-1, c.column+k%3-1
			if row < 0 || row >= f.n || column < 0 || column >= f.n {
				continue
			}
			if j := f.grid[row*f.n+column]; j >= 0 {
				copy(x[k*channels:], f.cells[j].x[:])
			}
		}
		for k := range channels {
			x[poolAt+k] = rows[c.row][k] / max(rows[c.row][channels], 1)
			x[poolAt+channels+k] = columns[c.column][k] / max(columns[c.column][channels], 1)
		}
		if j := f.grid[c.column*f.n+c.row]; j >= 0 {
			copy(x[backAt:], f.cells[j].x[:])
		}
	}
}

// level is the probability that a kernel gives to a cell, as a sum before the logistic function.
func (k *kernel) level(x *[inputs]float64) (sum float64) {
	for i, w := range k.Weights {
		sum += w * x[i]
	}
	return sum
}

// watch takes the next window and returns the hops of findings that begin. What is above the threshold in two windows
// and shares a row or a column is one finding, at the cell that is farthest above it.
func (f *film) watch(k *kernel, w *inference.Window, in [][inputs]float64) (begun []inference.HopKey) {
	f.add(w)
	f.input(in)
	levels := make([]float64, len(f.cells))
	var rise []int
	for i := range f.cells {
		c := &f.cells[i]
		if levels[i] = k.level(&in[i]); levels[i] < k.Threshold {
			if c.warm = 0; c.open {
				if c.calm++; c.calm >= endAfter {
					c.open = false
				}
			}
			continue
		}
		c.calm = 0
		if c.warm++; c.warm >= 2 && !c.open {
			rise = append(rise, i)
		}
	}
	slices.SortStableFunc(rise, func(a, b int) int {
		if levels[a] > levels[b] {
			return -1
		}
		return 1
	})
	for _, i := range rise {
		c, alone := &f.cells[i], true
		for j := range f.cells {
			if o := &f.cells[j]; o.open && (o.row == c.row || o.column == c.column || o.row == c.column && o.column == c.row) {
				alone = false
			}
		}
		if c.open = true; alone {
			begun = append(begun, c.hop)
		}
	}
	return begun
}

// example is a window of a cell with what is true of it.
type example struct {
	x     [inputs]float64
	fault bool
}

// pictureFaults are drawn for a kernel to learn from. Their sizes are drawn, and none is in the table of faults.
func pictureFaults(n *emu.Network, quiet, each, pause time.Duration, count int, r *rand.Rand) (script []emu.Fault) {
	g := n.Graph()
	for k := range count {
		f := emu.Fault{At: quiet + time.Duration(k)*(each+pause), For: each}
		i := r.IntN(g.NumInterfaces())
		for g.Neighbor(i) < 0 {
			i = r.IntN(g.NumInterfaces())
		}
		f.Node, f.Peer = g.NodeName(g.Node(i)), g.NodeName(g.Neighbor(i))
		switch r.IntN(5) {
		case 0:
			f.Kind, f.Value = emu.CutRate, .05+.3*r.Float64()
		case 1:
			f.Kind, f.Value = emu.CrossTraffic, .6+r.Float64()
		case 2:
			f.Kind, f.Delay = emu.DelayLine, time.Duration(2+10*r.Float64())*time.Millisecond
		case 3:
			f.Kind, f.Delay, f.Peer = emu.SlowSwitch, time.Duration(3+10*r.Float64())*time.Millisecond, ""
		default:
			f.Kind = emu.LinkDown
		}
		script = append(script, f)
	}
	return script
}

// shows reports whether a cell is of the element of a fault.
func shows(n *emu.Network, f *emu.Fault, c *cell) bool {
	g := n.Graph()
	v, _ := g.Lookup(f.Node)
	if n.NodeID(v) != c.hop.Node {
		if w, ok := g.Lookup(f.Peer); !ok || f.Kind != emu.LinkDown || n.NodeID(w) != c.hop.Node {
			return false
		}
		v, _ = g.Lookup(f.Peer)
		return g.NodeName(g.Neighbor(g.ByPort(v, int(c.hop.EgressIf)))) == f.Node
	}
	return f.Peer == "" || g.NodeName(g.Neighbor(g.ByPort(v, int(c.hop.EgressIf)))) == f.Peer
}

// The extent of learning.
const (
	pictureQuiet  = 200 * time.Second
	pictureEach   = 12 * time.Second
	picturePause  = 18 * time.Second
	pictureCount  = 40
	pictureEpochs = 30
	picturesSeed  = 70_000 // of networks to learn from: no bench draws it
)

// pictureRun emulates a network with faults and yields each window with the fault that is active in it, nil for none,
// and not while one begins or passes.
func pictureRun(ctx context.Context, seed uint64, count int, each func(n *emu.Network, f *emu.Fault, settled bool, w *inference.Window)) error {
	e := NewEmulation(seed)
	c, err := e.config()
	if err != nil {
		return err
	}
	plain, err := emu.New(c, seed)
	if err != nil {
		return err
	}
	c.Script = pictureFaults(plain, pictureQuiet, pictureEach, picturePause, count, rand.New(rand.NewPCG(seed, 3)))
	n, err := emu.New(c, seed)
	if err != nil {
		return err
	}
	var plan *pint.Plan = c.Plan
	p, err := newPipeline(analysis(), n, plan, c.Epoch.UnixNano())
	if err != nil {
		return err
	}
	end := pictureQuiet + time.Duration(count)*(pictureEach+picturePause)
	if count == 0 {
		end = 10 * pictureQuiet
	}
	for at := time.Duration(0); at < end; at += e.Window {
		if err := ctx.Err(); err != nil {
			return err
		}
		n.Run(at+e.Window, func(d emu.Datagram) {
			if d.Port != c.ProbePort {
				p.datagram(d)
			}
		})
		w := p.cut(at, at+e.Window)
		var active *emu.Fault
		settled := true
		for i := range c.Script {
			switch s := &c.Script[i]; {
			case at >= s.At+e.Window && at < s.At+s.For:
				active = s
			case at >= s.At && at < s.At+s.For+10*time.Second:
				settled = false
			}
		}
		each(n, active, settled, &w)
	}
	return nil
}

// runPicture learns a kernel by stochastic gradient descent on the logistic loss, sets its threshold on a quiet network,
// and prints it as picture.json holds it.
func runPicture(ctx context.Context, out io.Writer, o options) error {
	r := rand.New(rand.NewPCG(picturesSeed, 1))
	var examples []example
	for seed := range uint64(max(1, min(o.Seeds, 4))) {
		var f *film
		var in [][inputs]float64
		err := pictureRun(ctx, picturesSeed+seed, pictureCount, func(n *emu.Network, fault *emu.Fault, settled bool, w *inference.Window) {
			if f == nil {
				f = newFilm(n)
				in = make([][inputs]float64, len(f.cells))
			}
			for i := range f.cells {
				f.cells[i].open = fault != nil // nothing is learnt as usual while a fault is active
			}
			f.add(w)
			f.input(in)
			if f.windows < 2*youngWindows || !settled {
				return
			}
			for i := range in {
				truth := fault != nil && shows(n, fault, &f.cells[i])
				if truth || r.IntN(10) == 0 {
					examples = append(examples, example{in[i], truth})
				}
			}
		})
		if err != nil {
			return err
		}
	}
	k := kernel{Weights: make([]float64, inputs)}
	for epoch := range pictureEpochs {
		r.Shuffle(len(examples), func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
		rate := .02 / (1 + float64(epoch)/5)
		for i := range examples {
			x := &examples[i]
			truth := 0.
			if x.fault {
				truth = 1
			}
			d := rate * (truth - 1/(1+math.Exp(-k.level(&x.x))))
			for j := range k.Weights {
				k.Weights[j] += d*x.x[j] - rate*1e-4*k.Weights[j]
			}
		}
	}
	for i := range k.Weights {
		k.Weights[i] = math.Round(k.Weights[i]*1e4) / 1e4
	}

	// The threshold is the level that two windows in a row exceed once in 2,000 quiet windows of a network.
	var f *film
	var in [][inputs]float64
	var last, pairs []float64
	err := pictureRun(ctx, picturesSeed+100, 0, func(n *emu.Network, _ *emu.Fault, _ bool, w *inference.Window) {
		if f == nil {
			f = newFilm(n)
			in = make([][inputs]float64, len(f.cells))
			last = make([]float64, len(f.cells))
		}
		f.add(w)
		f.input(in)
		most := math.Inf(-1)
		for i := range in {
			level := k.level(&in[i])
			most = max(most, min(level, last[i]))
			last[i] = level
		}
		if f.windows > 2*youngWindows {
			pairs = append(pairs, most)
		}
	})
	if err != nil {
		return err
	}
	slices.Sort(pairs)
	k.Threshold = math.Round(max(pairs[len(pairs)-1], 0)*1e4) / 1e4
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}
