package topk_test

import (
	"fmt"
	"hash/maphash"

	"github.com/hopscope/hopscope/sketches/topk"
)

// Bytes are counted by talker, with four counters for thousands of talkers. Count is at most Error too high.
func Example() {
	heavy := topk.New[string](4)
	seed := maphash.MakeSeed()
	add := func(talker string, bytes uint64) {
		heavy.Add(maphash.String(seed, talker), &talker, bytes)
	}
	for i := range 3000 {
		add("10.0.0.1", 9000)
		add("10.0.0.2", 1500)
		add(fmt.Sprintf("10.1.%d.%d", i/256, i%256), 64)
	}
	for _, it := range heavy.Append(nil, 2) {
		fmt.Println(it.Key, "sent", it.Count, "bytes, at most", it.Error, "less")
	}
	fmt.Println("of", heavy.Total())
	// Output:
	// 10.0.0.1 sent 27000000 bytes, at most 0 less
	// 10.0.0.2 sent 4500000 bytes, at most 0 less
	// of 31692000
}
