package udp_test

import (
	"context"
	"fmt"
	"net"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/udp"
)

func ExampleSource() {
	cfg := udp.DefaultConfig()
	cfg.Listen = []string{"127.0.0.1:0"} // any free port
	source, err := udp.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}

	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(source.Addrs()[0]))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "a report")

	ctx, cancel := context.WithCancel(context.Background())
	err = source.Run(ctx, func(_ int, b *ingest.Batch) {
		for _, f := range b.Frames {
			fmt.Printf("%s from %v\n", f.Data, f.Src.Addr())
		}
		cancel()
	})
	fmt.Println(err, source.Stats().Frames, source.Stats().KernelDropped)
	// Output:
	// a report from 127.0.0.1
	// <nil> 1 0
}
