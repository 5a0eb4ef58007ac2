package p4

import (
	"bytes"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

//go:embed vectors/srint.json vectors/intmd.json vectors/into.json vectors/pint.json vectors/rft.json vectors/hopscope.json
var recordedFiles embed.FS

// recording is what a program did on simple_switch. It has the packets that went in with their tables, what the switch
// measured, and the packets that came out, with their ports. The format of the files and the way to make them are in
// vectors/README.md.
type recording struct {
	Program string   `json:"program"`
	Covered covered  `json:"covered"`
	Groups  []*Group `json:"groups"`
}

// covered counts what the packets of a file cover.
type covered struct {
	States  []string `json:"states"`  // of the parser
	Tables  []string `json:"tables"`  // that were applied
	Actions []string `json:"actions"` // table and action, with a space between
}

// Group is packets that a switch got one after the other, with the same tables. Registers were all 0 at its beginning.
type Group struct {
	Name     string    `json:"name"`
	Commands []string  `json:"commands"` // of simple_switch_CLI; one that begins with # is explained in vectors/README.md
	Packets  []*Packet `json:"packets"`
}

// Packet is one that went in. Passes are in the order in which the switch made them. Out is
// by port, those of one port in their order.
type Packet struct {
	Name   string  `json:"name"`
	In     Frame   `json:"in"`
	Behind []Frame `json:"behind,omitempty"` // sent right behind In, before that has left
	Passes []Pass  `json:"passes"`
	Out    []Frame `json:"out"`
}

// Frame is a frame at a port, from its Ethernet header on.
type Frame struct {
	Port  int `json:"port"`
	Bytes Hex `json:"frame"`
}

// Pass holds the metadata of the switch when a packet, or its clone, began its egress. Times are in microseconds since
// the switch started. A clone has no ingress port and no ingress time.
type Pass struct {
	Instance     uint32 `json:"instance"` // 0, or 1 and 2 for clones of ingress and egress
	IngressPort  uint16 `json:"ingress_port"`
	EgressPort   uint16 `json:"egress_port"`
	PacketLength uint32 `json:"packet_length"`
	Ingress      uint64 `json:"ingress_us"`
	Egress       uint64 `json:"egress_us"`
	Enqueued     uint32 `json:"enqueued_us"`
	EnqueueDepth uint32 `json:"enqueue_depth"`
	Queue        uint32 `json:"queue_us"` // time in the queue
	DequeueDepth uint32 `json:"dequeue_depth"`
}

// Hex is bytes that stand as hex digits in a file.
type Hex []byte

// String returns the digits.
func (h Hex) String() string { return hex.EncodeToString(h) }

// UnmarshalText reads hex digits.
func (h *Hex) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	*h = b
	return err
}

// Recorded returns what was recorded of a program.
func Recorded(program string) (*recording, error) {
	b, err := recordedFiles.ReadFile("vectors/" + program + ".json")
	if err != nil {
		return nil, fmt.Errorf("recording: there are none of %q", program)
	}
	var f recording
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("recording: %s.json: %w", program, err)
	}
	return &f, nil
}
