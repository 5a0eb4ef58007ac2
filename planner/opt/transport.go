package opt

import "slices"

// Transport is a flow in a bipartite network. It sends the supply of rows to open columns, each pair up to its
// capacity, by shortest augmenting paths (J. Edmonds and R. Karp, Journal of the ACM 19, 1972). A path takes O(pairs).
//
// Pairs have numbers: those of column c are colAt[c] to colAt[c+1], with the rows colRow, which ascend.
type Transport struct {
	colAt, colRow []int32
	Sent          []int64   // by pair
	Load          []int64   // by column: total flow to it
	Room          []int64   // by column: the most that it takes; 0 for closed ones
	Left          []int64   // by row: supply not sent yet
	Over          [][]int32 // by row: its pairs with open columns
	Effort        int64     // pairs looked at

	rowAt, rowCol []int32
	pair          []int32 // by entry of rowCol: its pair
	most          []int64 // by pair

	seenRow, seenCol []int32 // stamp of the search that came here
	fromRow, fromCol []int32 // pair by which it came
	stamp            int32
	queue            []int32
}

// NewTransport has the pairs of rows and columns as lists of both, see [Transpose]: rowCol[rowAt[r]:rowAt[r+1]] are the columns of row r.
// Most is the capacity by pair; a pair whose capacity is below 0 is not used. Left is the supply by row. Columns are closed.
func NewTransport(rowAt, rowCol, colAt, colRow []int32, most, left []int64) *Transport {
	rows, cols := len(rowAt)-1, len(colAt)-1
	t := &Transport{
		rowAt: rowAt, rowCol: rowCol, colAt: colAt, colRow: colRow, most: most, Left: left,
		pair: make([]int32, len(rowCol)), Sent: make([]int64, len(colRow)), Load: make([]int64, cols), Room: make([]int64, cols), Over: make([][]int32, rows),
		seenRow: make([]int32, rows), seenCol: make([]int32, cols), fromRow: make([]int32, rows), fromCol: make([]int32, cols),
	}
	next := slices.Clone(rowAt[:rows])
	for e, r := range colRow {
		t.pair[next[r]] = int32(e)
		next[r]++
	}
	return t
}

// Open lets column c take up to room.
func (t *Transport) Open(c int32, room int64) {
	t.Room[c] = room
	for e := t.colAt[c]; e < t.colAt[c+1]; e++ {
		if t.most[e] >= 0 {
			r := t.colRow[e]
			t.Over[r] = append(t.Over[r], e)
		}
	}
}

// Close takes everything from column c.
func (t *Transport) Close(c int32) {
	for e := t.colAt[c]; e < t.colAt[c+1]; e++ {
		r := t.colRow[e]
		t.Left[r] += t.Sent[e]
		t.Sent[e] = 0
		if t.most[e] >= 0 {
			t.Over[r] = Without(t.Over[r], e)
		}
	}
	t.Load[c], t.Room[c] = 0, 0
}

// Column is the column of pair e, which row r has: O(log columns of r).
func (t *Transport) Column(r, e int32) int32 {
	lo, hi := t.rowAt[r], t.rowAt[r+1]
	k, _ := slices.BinarySearch(t.pair[lo:hi], e) // pairs rise with the columns
	return t.rowCol[int(lo)+k]
}

// Send sends as much of row r as possible, and reroutes the flow of others where needed. It reports whether that is
// all.
func (t *Transport) Send(r int32) bool {
	for t.Left[r] > 0 {
		c, ok := t.find(r)
		if !ok {
			return false
		}
		t.augment(r, c)
	}
	return true
}

// Cut searches from row r, of which something cannot be sent, and returns the rows that it reaches. Together with the
// columns of which [Transport.InCut] is true they are a cut. These columns are full, and carry all that those rows
// send. The list is valid until the next search.
func (t *Transport) Cut(r int32) []int32 {
	t.find(r)
	return t.Reached()
}

// Reached is the rows that the last search came to, in its order. The list is valid until the next search.
func (t *Transport) Reached() []int32 { return t.queue }

// InCut reports whether the last search came to column c.
func (t *Transport) InCut(c int32) bool { return t.seenCol[c] == t.stamp }

// find searches for a column with room that row r can reach.
func (t *Transport) find(r int32) (c int32, ok bool) {
	t.stamp++
	t.queue = append(t.queue[:0], r)
	t.seenRow[r] = t.stamp
	for head := 0; head < len(t.queue); head++ {
		s := t.queue[head]
		t.Effort += int64(len(t.Over[s]))
		for _, e := range t.Over[s] {
			if t.Sent[e] == t.most[e] {
				continue
			}
			c := t.Column(s, e)
			if t.seenCol[c] == t.stamp {
				continue
			}
			t.seenCol[c], t.fromCol[c] = t.stamp, e
			if t.Load[c] < t.Room[c] {
				return c, true
			}
			for o := t.colAt[c]; o < t.colAt[c+1]; o++ {
				if q := t.colRow[o]; t.Sent[o] > 0 && t.seenRow[q] != t.stamp {
					t.seenRow[q], t.fromRow[q] = t.stamp, o
					t.queue = append(t.queue, q)
				}
			}
		}
	}
	return 0, false
}

// augment sends what row r has along the way found to column c.
func (t *Transport) augment(r, c int32) {
	n := min(t.Left[r], t.Room[c]-t.Load[c])
	for d := c; ; {
		e := t.fromCol[d]
		s := t.colRow[e]
		n = min(n, t.most[e]-t.Sent[e])
		if s == r {
			break
		}
		n = min(n, t.Sent[t.fromRow[s]])
		d = t.Column(s, t.fromRow[s])
	}
	t.Load[c] += n
	t.Left[r] -= n
	for d := c; ; {
		e := t.fromCol[d]
		s := t.colRow[e]
		t.Sent[e] += n
		if s == r {
			return
		}
		t.Sent[t.fromRow[s]] -= n
		d = t.Column(s, t.fromRow[s])
	}
}
