package pcapfile_test

import (
	"fmt"
	"io"

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
