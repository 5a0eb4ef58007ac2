package reportjson_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/reportjson"
)

func ExampleAppend() {
	r := decode.Report{
		Format: decode.TelemetryReport, Kind: decode.KindDrop, Version: decode.V20, Has: decode.HasNodeID | decode.HasDropReason,
		NodeID: 7, DropReason: 80, Flags: decode.Dropped,
	}
	fmt.Printf("%s\n", reportjson.Append(nil, 1, &r))
	// Output: {"frame":1,"time_ns":0,"format":"telemetry-report","version":"2.0","node_id":7,"kind":"drop","flags":["dropped"],"drop_reason":80}
}
