package p4rt

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/p4"
)

// Pipeline is a program for a switch, as it is loaded.
type Pipeline struct {
	Info   *Info
	device []byte // compiled program for the target; nil if the switch has its program from elsewhere
	Cookie uint64 // by which a switch identifies its pipeline
}

// NewPipeline makes a pipeline whose cookie is a hash over both parts: another program is another cookie.
func NewPipeline(info *Info, device []byte) (*Pipeline, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(info.proto)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	h.Write(b)
	h.Write(device)
	return &Pipeline{Info: info, device: device, Cookie: binary.BigEndian.Uint64(h.Sum(nil))}, nil
}

// readPipeline is NewPipeline for a p4info and a compiled program in files. Without a device file there is no program to load.
func readPipeline(info, device string) (*Pipeline, error) {
	text, err := os.ReadFile(info)
	if err != nil {
		return nil, err
	}
	x, err := parseInfo(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", info, err)
	}
	var code []byte
	if device != "" {
		if code, err = os.ReadFile(device); err != nil {
			return nil, err
		}
	}
	return NewPipeline(x, code)
}

// BMv2 returns the pipeline of one of [p4.Programs] for BMv2. Its tables are written in an order in which packets meet
// whole plans alone.
func BMv2(program string) (*Pipeline, error) {
	text, device, err := p4.Compiled(program)
	if err != nil {
		return nil, err
	}
	x, err := parseInfo(text)
	if err == nil {
		x, err = x.ordered(p4.TableOrder(program)...)
	}
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", program, err)
	}
	return NewPipeline(x, device)
}

// Config is the pipeline as P4Runtime has it.
func (p *Pipeline) Config() *p4pb.ForwardingPipelineConfig {
	return &p4pb.ForwardingPipelineConfig{P4Info: p.Info.proto, P4DeviceConfig: p.device, Cookie: &p4pb.ForwardingPipelineConfig_Cookie{Cookie: p.Cookie}}
}
