package pcapfile_test

import (
	"context"
	"fmt"
	"io"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
)

func ExampleReader_Next() {
	r, err := pcapfile.Open("testdata/int05-in-report05.pcap")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if err == io.EOF {
			return
		} else if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("frame %d, link type %d, %d of %d bytes\n", f.Number, f.Link, len(f.Data), f.Length)
	}
	// Output:
	// frame 1, link type 1, 137 of 137 bytes
}

// A capture is read beside the sockets of a running collector, until that ends.
func ExampleFollow() {
	cfg := pcapfile.DefaultFollowConfig()
	cfg.Files = []string{"testdata/int05-in-report05.pcap"}
	source, err := pcapfile.NewFollow(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = source.Run(ctx, func(worker int, b *ingest.Batch) {
		for _, f := range b.Frames {
			fmt.Printf("%d bytes from %s\n", len(f.Data), source.Inputs()[worker].Name)
		}
		cancel()
	})
	fmt.Println(err)
	// Output:
	// 137 bytes from testdata/int05-in-report05.pcap
	// <nil>
}
