package digests

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/planner/topo"
)

// question is a number of flows of which a foreign program decodes the digests. Its answer names a path for each, or
// none.
type question struct {
	harness.Question
	network *network
	scheme  *pint.Scheme
	hops    int
	packets int
	truth   [][]uint32
}

// digestsText is the problem of a question.
type digestsText struct {
	Nodes int        `json:"nodes"` // switches are 0 to nodes-1
	Links [][2]int32 `json:"links"`
	Hops  int        `json:"hops"` // switches of each path, which is a shortest one
	Bits  int        `json:"bits"` // of a digest
	Flows []flowText `json:"flows"`
}

type flowText struct {
	Digests []digestText `json:"digests"`
}

// digestText is one digest of a packet, and its possible values.
type digestText struct {
	Writers []int  `json:"writers"` // hops that wrote, from 0; the digest is the XOR of the hashes of their switches
	Digest  uint32 `json:"digest"`
	Hashes  string `json:"hashes"` // of all switches for this packet, two hexadecimal digits each
}

// pathsText is an answer.
type pathsText struct {
	Paths [][]uint32 `json:"paths"` // by flow; null for a path that the digests do not decide
}

// questions makes flows of the networks of figure 10, with as many packets as nearly decide a path, decide most, and
// decide all.
func questions(o Options, seconds float64) (list []*question, err error) {
	kdl, err := readNetwork("Kentucky Datalink", "kdl.txt")
	if err != nil {
		return nil, err
	}
	tree, err := topo.FatTree(8)
	if err != nil {
		return nil, err
	}
	fabric := newNetwork("Fat-tree k = 8", tree)
	for _, c := range []struct {
		n                        *network
		d, hops, bits, instances int
		packets                  []int
	}{
		{fabric, 5, 5, 8, 2, []int{2, 4, 8}},
		{fabric, 5, 5, 4, 1, []int{6, 12, 24}},
		{kdl, 10, 12, 8, 2, []int{4, 10, 20}},
	} {
		config := pint.MultiLayer(c.bits, c.d)
		config.Seed, config.Instances = uint32(o.Seed), c.instances
		scheme, err := pint.New(config)
		if err != nil {
			return nil, err
		}
		for _, packets := range c.packets {
			q := &question{network: c.n, scheme: scheme, hops: c.hops, packets: packets}
			q.Family, q.Seed, q.Seconds = "pint", o.Seed, seconds
			q.Name = fmt.Sprintf("%s, %d hops, %d × %d bits, %d packets", c.n.name, c.hops, c.instances, c.bits, packets)
			q.flows(o)
			list = append(list, q)
		}
	}
	return list, nil
}

// draw are the random numbers of a flow. Its path is drawn first, then the id of each packet.
func (q *question) draw(flow int) (*rand.Rand, []uint32) {
	h := fnv.New64a()
	io.WriteString(h, q.Name)
	r := rand.New(rand.NewPCG(q.Seed^h.Sum64(), uint64(flow)))
	return r, q.network.path(q.hops, r)
}

// flows makes the problem and its truth.
func (q *question) flows(o Options) {
	n := 50
	if o.Runs > 0 {
		n = o.Runs
	}
	all := q.network.nodes()
	p := &digestsText{Nodes: len(all), Links: q.network.links(), Hops: q.hops, Bits: q.scheme.Width()}
	values := make([]uint32, len(all))
	for flow := range n {
		r, path := q.draw(flow)
		q.truth = append(q.truth, path)
		var f flowText
		for range q.packets {
			id := r.Uint32()
			digest := q.scheme.Digest(id, path)
			for k := range q.scheme.Instances() {
				packet := q.scheme.Packet(id, k)
				writers := q.scheme.Writers(&packet, q.hops)
				d := digestText{Writers: []int{}, Digest: q.scheme.Part(digest, k)}
				for w := writers; w != 0; w &= w - 1 {
					d.Writers = append(d.Writers, bits.TrailingZeros64(w))
				}
				q.scheme.Values(values, &packet, packet.Role(writers, q.hops), all)
				text := make([]byte, 0, 2*len(values))
				for _, v := range values {
					text = fmt.Appendf(text, "%02x", v)
				}
				d.Hashes = string(text)
				f.Digests = append(f.Digests, d)
			}
		}
		p.Flows = append(p.Flows, f)
	}
	q.Problem, q.Truth = p, pathsText{q.truth}
}

// decoded is how many paths a decoder named, right and wrong.
type decoded struct{ right, wrong int }

func (d *decoded) add(path, truth []uint32) {
	switch {
	case path == nil:
	case slices.Equal(path, truth):
		d.right++
	default:
		d.wrong++
	}
}

// text is the share of paths that are right, and the wrong ones.
func (d decoded) text(q *question) string {
	return fmt.Sprintf("%.0f %%, %d wrong", 100*float64(d.right)/float64(len(q.truth)), d.wrong)
}

// decode hands the packets of all flows to a decoder of ours.
func (q *question) decode(ctx context.Context, t tracer) (sum decoded, err error) {
	for flow, truth := range q.truth {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		r, path := q.draw(flow)
		if err := t.begin(path); err != nil {
			return sum, err
		}
		for range q.packets {
			if got, done := t.packet(r); done {
				sum.add(got, truth)
				break
			}
		}
	}
	return sum, nil
}

// judge reads an answer.
func (q *question) judge(answer *pathsText) (sum decoded, err error) {
	if len(answer.Paths) != len(q.truth) {
		return sum, fmt.Errorf("paths: %d, want one for each of %d flows, null where it is not known", len(answer.Paths), len(q.truth))
	}
	for flow, path := range answer.Paths {
		if path != nil && len(path) != q.hops {
			return sum, fmt.Errorf("paths[%d]: %d switches, want %d, or null where it is not known", flow, len(path), q.hops)
		}
		for _, v := range path {
			if int(v) >= q.network.graph.NumNodes() {
				return sum, fmt.Errorf("paths[%d]: there is no switch %d; they are 0 to %d", flow, v, q.network.graph.NumNodes()-1)
			}
		}
		sum.add(path, q.truth[flow])
	}
	return sum, nil
}

// WriteQuestions writes the questions and their truths into a directory.
func WriteQuestions(dir string, o Options, seconds float64) error {
	list, err := questions(o, seconds)
	if err != nil {
		return err
	}
	var asked []*harness.Question
	for _, q := range list {
		asked = append(asked, &q.Question)
	}
	return harness.Write(dir, slices.Values(asked))
}

// ForeignTable runs a foreign program to decode digests. It prints its paths beside those that PINT's decoder and
// ours find after the same packets. An invalid answer has a line with the reason.
func ForeignTable(ctx context.Context, w io.Writer, p *harness.Program, o Options) (err error) {
	list, err := questions(o, p.Limit.Seconds())
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Paths that %s decodes, at most %v each\n", p, p.Limit)
	t := harness.Columns(w, 2, 0)
	defer func() { // also of the results so far when it is interrupted
		if e := t.Flush(); err == nil {
			err = e
		}
	}()
	fmt.Fprintln(t, "flows\tof\tPINT, V = all\tours, V = all\tours, and the links\tours, and distances\ttheirs\tseconds\tremark")
	for _, q := range list {
		if o.Progress != nil {
			o.Progress(q.Name)
		}
		row := fmt.Sprintf("%d\t%s", len(q.truth), q.Name)
		decoders := []tracer{&pintTracer{scheme: q.scheme, candidates: q.network.nodes()}}
		for _, k := range knowledges[1:] {
			ours, err := newOurTracer(q.network, q.scheme, k)
			if err != nil {
				return err
			}
			decoders = append(decoders, ours)
		}
		for _, d := range decoders {
			sum, err := q.decode(ctx, d)
			if err != nil {
				return err
			}
			row += "\t" + sum.text(q)
		}
		var answer pathsText
		took, err := p.Ask(ctx, &q.Question, &answer)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var theirs decoded
		if err == nil {
			theirs, err = q.judge(&answer)
		}
		if err != nil {
			fmt.Fprintf(t, "%s\t-\t%.2f\tno paths: %s\n", row, took.Seconds(), harness.Reason(err))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t\n", row, theirs.text(q), took.Seconds())
	}
	return nil
}
