package ddsketch_test

import (
	"fmt"
	"log"

	"github.com/hopscope/hopscope/sketches/ddsketch"
)

// Two sites sketch latencies in microseconds. One sends its sketch as bytes, and the merged sketch answers for both.
func Example() {
	cfg := ddsketch.DefaultConfig()
	here, there, received := newSketch(cfg), newSketch(cfg), newSketch(cfg)
	for i := 1; i <= 1000; i++ {
		if err := here.Add(float64(i)); err != nil {
			log.Fatal(err)
		}
		if err := there.Add(float64(1000 + i)); err != nil {
			log.Fatal(err)
		}
	}
	sent, err := there.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := received.UnmarshalBinary(sent); err != nil {
		log.Fatal(err)
	}
	if err := here.Merge(received); err != nil {
		log.Fatal(err)
	}
	fmt.Println(here.Count(), "values from", here.Min(), "to", here.Max())
	for _, v := range here.Quantiles(nil, 0.5, 0.99) { // within 1 % of 1000 and 1980
		fmt.Printf("%.0f\n", v)
	}
	// Output:
	// 2000 values from 1 to 2000
	// 995
	// 1990
}

func newSketch(cfg ddsketch.Config) *ddsketch.Sketch {
	s, err := ddsketch.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	return s
}
