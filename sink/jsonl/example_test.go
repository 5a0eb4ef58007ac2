package jsonl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/jsonl"
)

func ExampleWriter() {
	dir, err := os.MkdirTemp("", "series")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	conf := jsonl.DefaultConfig()
	conf.Path = filepath.Join(dir, "series.jsonl") // "-" is standard output
	w, err := jsonl.New(conf)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	err = w.Write(context.Background(), &sink.Batch{Points: []sink.Point{{
		Measurement: "hop",
		Tags:        []sink.Tag{{Key: "egress_if", Value: "3"}, {Key: "node", Value: "17"}},
		Fields:      []sink.Field{sink.IntField("count", 12), sink.IntField("latency_p50", 1800)},
		Time:        1_763_773_210_000_000_000,
	}}})
	b, _ := os.ReadFile(conf.Path)
	fmt.Printf("%s%v\n", b, err)
	// Output:
	// {"measurement":"hop","time":"2025-11-22T01:00:10.000000000Z","tags":{"egress_if":"3","node":"17"},"fields":{"count":12,"latency_p50":1800}}
	// <nil>
}
