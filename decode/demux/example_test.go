package demux_test

import (
	"fmt"
	"net/netip"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/internal/testkit"
)

func ExampleDecoder_Datagram() {
	payload, err := testkit.Vector("tr20-group")
	if err != nil {
		fmt.Println(err)
		return
	}
	profile, _ := demux.Lookup("auto")
	d := demux.New(profile)
	var batch decode.Batch // reused from datagram to datagram
	d.Datagram(&batch, decode.AddrFrom(netip.MustParseAddr("192.0.2.1")), payload, 0)
	for _, r := range batch.Reports {
		fmt.Println(r.Kind, "from node", r.NodeID, "about", r.Flow, "with", len(r.Hops), "hop")
	}
	// Output:
	// postcard from node 195 about 10.0.1.1:1111 > 10.0.2.2:2222 udp with 1 hop
	// drop from node 195 about no flow with 1 hop
}
