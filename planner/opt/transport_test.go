package opt

import (
	"math/rand/v2"
	"testing"
)

// TestTransport: what is sent is as much as the least cut lets through, over all sets of rows, while columns open, close and open again.
func TestTransport(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		rows, cols := 1+r.IntN(5), 1+r.IntN(5)
		rowAt, rowCol := []int32{0}, []int32(nil)
		for range rows {
			for c := range int32(cols) {
				if r.IntN(3) > 0 {
					rowCol = append(rowCol, c)
				}
			}
			rowAt = append(rowAt, int32(len(rowCol)))
		}
		colAt, colRow := Transpose(rowAt, rowCol, cols)
		most, left, room := make([]int64, len(colRow)), make([]int64, rows), make([]int64, cols)
		for e := range most {
			most[e] = r.Int64N(6) - 1
		}
		supply := make([]int64, rows)
		for k := range left {
			left[k] = r.Int64N(12)
			supply[k] = left[k]
		}
		x := NewTransport(rowAt, rowCol, colAt, colRow, most, left)
		for step := range 6 {
			c := r.Int32N(int32(cols))
			if x.Close(c); r.IntN(3) > 0 {
				room[c] = r.Int64N(10)
				x.Open(c, room[c])
			} else {
				room[c] = 0
			}
			whole := true
			for k := range int32(rows) {
				if !x.Send(k) {
					whole = false
					if x.Cut(k)[0] != k {
						t.Fatalf("seed %d: the cut of row %d begins with %d", seed, k, x.Cut(k)[0])
					}
				}
			}
			var sent, loads int64
			for d := range cols {
				load := int64(0)
				for e := colAt[d]; e < colAt[d+1]; e++ {
					if x.Sent[e] < 0 || x.Sent[e] > max(most[e], 0) {
						t.Fatalf("seed %d, step %d: %d of pair %d, whose capacity is %d", seed, step, x.Sent[e], e, most[e])
					}
					load += x.Sent[e]
				}
				if load != x.Load[d] || load > room[d] {
					t.Fatalf("seed %d, step %d: column %d has %d, said to be %d of %d", seed, step, d, load, x.Load[d], room[d])
				}
				loads += load
			}
			rest := int64(0)
			for k, n := range x.Left {
				sent += supply[k] - n
				rest += n
			}
			least := int64(1 << 40)
			for set := range 1 << rows {
				cut := int64(0)
				for k, n := range supply {
					if set>>k&1 == 0 {
						cut += n
					}
				}
				for d := range cols {
					in := int64(0)
					for e := colAt[d]; e < colAt[d+1]; e++ {
						if set>>colRow[e]&1 == 1 {
							in += max(most[e], 0)
						}
					}
					cut += min(in, room[d])
				}
				least = min(least, cut)
			}
			if sent != loads || sent != least || whole != (rest == 0) {
				t.Fatalf("seed %d, step %d: %d sent, %d in columns, and the least cut is %d", seed, step, sent, loads, least)
			}
		}
	}
}

// TestFractionalKnapsack holds the bound against all choices of copies, and against the value of all where these fit.
func TestFractionalKnapsack(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 6))
		n := 1 + r.IntN(4)
		items := Ascending[int32](n)
		value, size, count := make([]int64, n), make([]int64, n), make([]int32, n)
		all, volume := int64(0), int64(0)
		for i := range n {
			value[i], size[i], count[i] = r.Int64N(9), 1+r.Int64N(6), r.Int32N(4)
			all += value[i] * int64(count[i])
			volume += size[i] * int64(count[i])
		}
		room, best := r.Int64N(20), int64(0)
		var choose func(i int, left, sum int64)
		choose = func(i int, left, sum int64) {
			if best = max(best, sum); i == n {
				return
			}
			for k := int64(0); k <= int64(count[i]) && k*size[i] <= left; k++ {
				choose(i+1, left-k*size[i], sum+k*value[i])
			}
		}
		choose(0, room, 0)
		got := FractionalKnapsack(items, value, size, count, room)
		if got < best || volume <= room && got != all || got > all+1 {
			t.Fatalf("seed %d: bound %d, want at least %d, and %d where %d fit into %d", seed, got, best, all, volume, room)
		}
	}
}
