package rate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
)

// recorded is the messages of a program, over and over. Sequence numbers count on, and each exporter has its domain.
type recorded struct {
	messages [][]byte
	most     int // bytes
	at       int // where a message has its sequence number; its domain is four bytes behind
	turn     []int
	lap      uint32 // added to sequence numbers by a lap
}

var _ traffic.Datagrams = (*recorded)(nil)

// softflowdFlows are the flows of the capture that softflowd reads.
const softflowdFlows = 2000

// recordSoftflowd has softflowd read a capture, and takes the messages that it sends about it.
func recordSoftflowd(version uint16, exporters int) (_ *recorded, err error) {
	dir, err := os.MkdirTemp("", "hopscope-softflowd-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "flows.pcap")
	if err := os.WriteFile(path, flowCapture(softflowdFlows), 0o600); err != nil {
		return nil, err
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetReadBuffer(4 << 20); err != nil {
		return nil, err
	}
	args := []string{"-r", path, "-n", c.LocalAddr().String(), "-v", strconv.Itoa(int(version)), "-d", "-m", strconv.Itoa(2 * softflowdFlows), "-p", filepath.Join(dir, "pid"), "-c", "none"}
	if out, err := exec.Command("softflowd", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("softflowd: %w: %s", err, out)
	}
	r := &recorded{at: 8, turn: make([]int, exporters)}
	if version == ipfix.V9 {
		r.at = 12
	}
	buf := make([]byte, 1<<16)
	for {
		if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return nil, err
		}
		n, err := c.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n < 20 || binary.BigEndian.Uint16(buf) != version {
			return nil, fmt.Errorf("softflowd: a message of %d bytes and version %d", n, binary.BigEndian.Uint16(buf))
		}
		r.messages, r.most = append(r.messages, append([]byte(nil), buf[:n]...)), max(r.most, n)
	}
	if len(r.messages) == 0 {
		return nil, errors.New("softflowd: no message")
	}
	if r.lap = uint32(len(r.messages)); version != ipfix.V9 {
		r.lap = softflowdFlows // it counts records
	}
	if last := binary.BigEndian.Uint32(r.messages[len(r.messages)-1][r.at:]); last != r.lap {
		return nil, fmt.Errorf("softflowd: its last message has number %d, not %d", last, r.lap)
	}
	return r, nil
}

// flowCapture is a pcap file with a packet of each flow.
func flowCapture(flows int) []byte {
	le, load := binary.LittleEndian, newFlowLoad(0, 1)
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	b = le.AppendUint32(le.AppendUint32(append(b, make([]byte, 8)...), 1<<16), 1) // Ethernet
	frame := load.packet
	for i := range flows {
		addr, port := load.next()
		binary.BigEndian.PutUint32(frame[14+12:], addr)
		binary.BigEndian.PutUint16(frame[14+packet.IPv4Len:], port)
		b = le.AppendUint32(le.AppendUint32(b, uint32(1_700_000_000+i/1000)), uint32(i%1000*1000))
		b = append(le.AppendUint32(le.AppendUint32(b, uint32(len(frame))), uint32(len(frame))), frame...)
	}
	return b
}

func (r *recorded) Exporters() int { return len(r.turn) }

func (r *recorded) Bytes() int { return r.most }

func (r *recorded) NextFrom(exporter int, buf []byte) []byte {
	be, turn := binary.BigEndian, r.turn[exporter]
	r.turn[exporter]++
	buf = append(buf[:0], r.messages[turn%len(r.messages)]...)
	be.PutUint32(buf[r.at:], be.Uint32(buf[r.at:])+uint32(turn/len(r.messages))*r.lap)
	be.PutUint32(buf[r.at+4:], uint32(exporter+1))
	return buf
}
