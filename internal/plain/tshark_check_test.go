//go:build check

package plain

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/sflow"
)

// node is a line of tshark's reading: a field with where its bytes are.
type node struct {
	depth      int
	name, show string
	at, size   int
	value      string // its bytes in hexadecimal
}

// inUDP is how many bytes are in front of a message.
const inUDP = 28

// tshark reads messages as those of a protocol, and calls f with its reading of each. The test fails where it is not
// installed: .ci/tshark.sh.
func tshark(t *testing.T, protocol string, port int, messages [][]byte, f func(i int, list []node)) {
	t.Helper()
	le, be := binary.LittleEndian, binary.BigEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = append(le.AppendUint32(b, 2|4<<16), make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 1<<17), 101) // IPv4 is in front
	for i, m := range messages {
		f := append(make([]byte, inUDP), m...)
		f[0], f[8], f[9], f[12], f[16] = 0x45, 64, 17, 10, 10
		be.PutUint16(f[2:], uint16(len(f)))
		be.PutUint32(f[20:], 50000<<16|uint32(port))
		be.PutUint16(f[24:], uint16(len(f)-20))
		b = le.AppendUint32(le.AppendUint32(b, 1_790_000_000), uint32(i)%1e6)
		b = append(le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f))), f...)
	}
	file := filepath.Join(t.TempDir(), "messages.pcap")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "tshark", "-r", file, "-T", "pdml", "-J", protocol, "--disable-protocol", "eth",
		"-d", fmt.Sprintf("udp.port==%d,%s", port, protocol))
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	read := 0
	var list []node
	lines := bufio.NewScanner(out)
	for lines.Buffer(nil, 1<<24); lines.Scan(); {
		line := lines.Text()
		text := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(text, "<field ") || strings.HasPrefix(text, "<proto "):
			n := node{depth: (len(line) - len(text)) / 2, name: attribute(text, "name"), show: attribute(text, "show"), value: attribute(text, "value")}
			n.at, _ = strconv.Atoi(attribute(text, "pos"))
			n.size, _ = strconv.Atoi(attribute(text, "size"))
			n.at -= inUDP
			list = append(list, n)
		case text == "</packet>":
			f(read, list)
			read, list = read+1, list[:0]
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || read != len(messages) {
		t.Fatalf("%v: tshark read %d of %d messages: %s", err, read, len(messages), complaint.Bytes())
	}
}

// ofDomain puts a message into a domain. Each exporter has its own, since tshark distinguishes them by their addresses,
// which are the same here.
func ofDomain(b []byte, domain uint32) []byte {
	at := 12
	if b[1] == 9 {
		at = 16
	}
	binary.BigEndian.PutUint32(b[at:], domain)
	return b
}

// recordings are files of the tree, and those that a variable of the environment names, which are not ours to keep.
func recordings(pattern, variable string) []string {
	own, _ := filepath.Glob(pattern)
	others, _ := filepath.Glob(os.Getenv(variable))
	slices.Reverse(others) // templates are in front of the data
	return append(own, others...)
}

func attribute(line, name string) string {
	_, rest, _ := strings.Cut(line, " "+name+`="`)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}

// parted are the elements that tshark shows in parts, or not, where their length is none of their type: flags, times,
// numbers of applications, ICMP. RFC 7011, section 6.2, lets integers alone be shorter; a collector hands over what has
// another length as it is.
var parted = []uint16{6, 21, 22, 95, 139, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161}

// placed returns the product's reading of a message: its templates, and each value with its place and length.
func (x *ipfixReading) placed(b []byte) (lines []string, inParts map[string][2]int) {
	var rd ipfix.Reader
	var m ipfix.Message
	var set ipfix.Set
	inParts = map[string][2]int{}
	p := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	ok := rd.Start(&m, b, 0, len(b))
	p("v%d seq %d domain %d", m.Version, m.Seq, m.Domain)
	for ok && rd.Next(&set) {
		p("set %d", set.ID)
		if templates, _ := set.Templates(); templates {
			var ds ipfix.Definitions
			var d ipfix.Definition
			for ds.Start(m.Version, &set); ds.Next(&d); {
				x.session.Define(&m, &d)
				line := fmt.Sprintf("template %d", d.ID)
				for i, e := range x.session.Template(&m, d.ID).Fields {
					if i < d.Scopes {
						line += " scope"
					}
					line += fmt.Sprintf(" %d.%d/%d", e.PEN, e.ID, e.Length)
				}
				p("%s", line)
			}
			continue
		}
		t := x.session.Template(&m, set.ID)
		if t == nil {
			continue
		}
		var r ipfix.Records
		for r.Start(t, &set); r.Next(); {
			line := "record"
			for i, e := range t.Fields {
				if n := len(r.Value(i)); n > 0 {
					v := fmt.Sprintf(" %d+%d", r.Offset(i), n)
					line += v
					if e.PEN == 0 && slices.Contains(parted, e.ID) {
						inParts[v] = [2]int{r.Offset(i), r.Offset(i) + n}
					}
				}
			}
			p("%s", line)
		}
	}
	return lines, inParts
}

// ipfixOfTshark returns tshark's reading of a message, in the words of placed. Tshark gives up a message at a value
// whose length is none of its element's type. Then whole is false, and the last record is read so far.
func ipfixOfTshark(list []node) (lines []string, whole bool) {
	var version, seq, element, scope string
	inTemplate, inRecord := false, false
	add := func(format string, args ...any) { lines[len(lines)-1] += fmt.Sprintf(format, args...) }
	for i, n := range list {
		switch {
		case n.depth == 2 && n.name == "cflow.version":
			version = n.show
		case n.depth == 2 && n.name == "cflow.sequence":
			seq = n.show
		case n.depth == 2 && (n.name == "cflow.od_id" || n.name == "cflow.source_id"):
			lines = append(lines, fmt.Sprintf("v%s seq %s domain %s", version, seq, n.show))
		case n.depth == 3 && n.name == "cflow.flowset_id":
			lines = append(lines, "set "+n.show)
		case n.name == "" && n.depth == 3:
			inTemplate, inRecord = strings.Contains(n.show, "Template (Id"), strings.HasPrefix(n.show, "Flow ")
			if inRecord {
				lines = append(lines, "record")
			}
		case inTemplate && n.name == "cflow.template_id":
			lines = append(lines, "template "+n.show)
		case inTemplate && n.name == "cflow.template_field_length":
			pen := "0"
			if i+1 < len(list) && list[i+1].name == "cflow.template_ipfix_field_pen" {
				pen = list[i+1].show
			}
			add("%s %s.%s/%s", scope, pen, element, n.show)
		case inTemplate && n.name == "" && n.depth == 4:
			if scope = ""; strings.Contains(n.show, "[Scope]") {
				scope = " scope"
			}
		case inTemplate && strings.Contains(n.name, "_type"):
			element = n.show
		case inRecord && n.depth == 4 && n.size > 0 && n.name != "cflow.icmp_ipv6_code": // which it reads behind a value of one byte
			add(" %d+%d", n.at, n.size)
		}
	}
	return lines, !slices.ContainsFunc(list, func(n node) bool { return n.depth == 1 && n.name == "_ws.malformed" })
}

// within reports whether every value that tshark shows of a record is one of ours, or a part of one in parts. It counts
// ours and those that tshark shows.
func within(ours, theirs string, inParts map[string][2]int, all, shown *int) bool {
	list := strings.Fields(ours)
	*all += len(list) - 1
	for v := range strings.FieldsSeq(theirs) {
		at := slices.Index(list, v)
		if at >= 0 {
			list = list[at+1:]
			*shown++
			continue
		}
		begin, part := 0, false
		fmt.Sscanf(v, "%d+", &begin)
		for _, x := range inParts {
			part = part || begin >= x[0] && begin < x[1]
		}
		if !part {
			return false
		}
	}
	*shown-- // the word in front
	return true
}

// Both find the same templates and records, and every value that tshark shows is one of ours at its place. Three
// differences are by the specification. Tshark gives up a message at an address whose length is none (RFC 7011, section
// 6.2). By the specification integers alone may be shorter, and a value of another length is handed over as it is. It
// shows flags, times, applications and ICMP of such lengths in parts, or not: see [parted]. It keeps the first template
// of a number where another one comes (section 8.1: the new one counts). So no number is used twice here.
func TestIPFIXAgainstTshark(t *testing.T) {
	rnd := rand.New(rand.NewPCG(28, 40))
	var messages [][]byte
	for domain := uint32(0); len(messages) < 10_000; domain++ {
		for _, b := range ipfixSession(rnd) {
			messages = append(messages, ofDomain(b, domain))
		}
	}
	for _, file := range recordings("", "IPFIX_RECORDINGS") {
		for _, b := range Payloads(t, file) {
			if len(b) > 1 && (b[1] == 9 || b[1] == 10) && b[0] == 0 {
				exporter, _, _ := strings.Cut(strings.TrimSuffix(file, "-data.pcap"), "-template")
				messages = append(messages, ofDomain(b, crc32.ChecksumIEEE([]byte(exporter))))
			}
		}
	}
	x := newIPFIXReading()
	ended, all, shown := 0, 0, 0
	tshark(t, "cflow", 4739, messages, func(i int, list []node) {
		got, inParts := x.placed(messages[i])
		want, whole := ipfixOfTshark(list)
		same := len(got) == len(want)
		if !whole {
			ended++
			same = len(got) >= len(want)
		}
		for k := 0; same && k < len(want); k++ {
			if same = got[k] == want[k]; !same && strings.HasPrefix(got[k], "record") {
				same = within(got[k], want[k], inParts, &all, &shown)
			} else if same && strings.HasPrefix(got[k], "record") {
				n := strings.Count(got[k], "+")
				all, shown = all+n, shown+n
			}
		}
		if !same {
			t.Fatalf("%x:\n%s\nwant\n%s", messages[i], strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Logf("%d messages, %d of which tshark read in part; it shows %d of %d values", len(messages), ended, shown, all)
	if ended > len(messages)/8 || shown < all-all/20 {
		t.Error("tshark showed too little")
	}
}

// sflowWords are the values that both read from samples, in the order of tshark.
var sflowWords = []string{
	"sflow.flow_sample.sequence_number", "sflow.flow_sample.source_id_class", "sflow.flow_sample.index", "sflow.flow_sample.source_id_type", "sflow.flow_sample.source_id_index",
	"sflow.flow_sample.sampling_rate", "sflow.flow_sample.sample_pool", "sflow.flow_sample.dropped_packets", "sflow.flow_sample.input_interface", "sflow.flow_sample.input_interface_format",
	"sflow.flow_sample.input_interface_value", "sflow.flow_sample.output_interface_format", "sflow.flow_sample.output_interface.format", "sflow.flow_sample.output_interface_value",
	"sflow.counters_sample.sequence_number", "sflow.counters_sample.source_id_type", "sflow.counters_sample.source_id_index",
	"sflow_245.header_protocol", "sflow_245.header.frame_length", "sflow_245.header.payload_stripped", "sflow_245.header.sampled_header_length",
	"sflow_245.ifindex", "sflow_245.iftype", "sflow_245.ifspeed", "sflow_245.ifdirection", "sflow_245.ifinoct", "sflow_245.ifinpkt", "sflow_245.ifinmcast", "sflow_245.ifinbcast",
	"sflow_245.ifindisc", "sflow_245.ifinerr", "sflow_245.ifinunk", "sflow_245.ifoutoct", "sflow_245.ifoutpkt", "sflow_245.ifoutmcast", "sflow_245.ifoutbcast", "sflow_245.ifoutdisc",
	"sflow_245.ifouterr", "sflow_245.ifpromisc",
}

// sflowOfTshark returns tshark's reading of a datagram: a line for it and for each of its samples.
func sflowOfTshark(list []node) (lines []string) {
	head, tags := "", "" // the record of VLANs comes last
	for _, n := range append(list, node{name: "sflow_245.sampletype"}) {
		switch {
		case n.depth == 2 && (n.name == "sflow_245.agent" || n.name == "sflow_245.agent.v6" || strings.HasSuffix(n.name, "_id") || strings.HasSuffix(n.name, "sequence_number") ||
			n.name == "sflow_245.sysuptime" || n.name == "sflow_245.numsamples"):
			if strings.Contains(n.name, "agent") && n.name != "sflow_245.sub_agent_id" {
				head = n.value
			} else {
				head += " " + n.show
			}
			if n.name == "sflow_245.numsamples" {
				lines = append(lines, head)
			}
		case n.name == "sflow_245.sampletype":
			if tags != "" {
				lines[len(lines)-1], tags = lines[len(lines)-1]+tags, ""
			}
			lines = append(lines, "sample "+n.show)
		case strings.HasPrefix(n.name, "sflow_245.vlan.") || strings.HasPrefix(n.name, "sflow_245.pri."):
			tags += " " + n.show
		case slices.Contains(sflowWords, n.name):
			v := n.show
			if n.name == "sflow_245.ifspeed" || strings.HasPrefix(v, "0x") {
				x, _ := strconv.ParseUint(n.value, 16, 64)
				v = fmt.Sprint(x)
			}
			lines[len(lines)-1] += " " + v
		case n.name == "sflow_245.header":
			lines[len(lines)-1] += " " + n.value
		}
	}
	return lines[:len(lines)-1]
}

// sflowAsTshark returns the product's reading of a datagram, in the words of sflowOfTshark.
func sflowAsTshark(b []byte) (lines []string) {
	var rd sflow.Reader
	var d sflow.Datagram
	var s sflow.Sample
	if !rd.Start(&d, b, 0, len(b)) {
		return nil
	}
	agent := d.Agent[:]
	if d.IPv == 4 {
		agent = agent[12:]
	}
	lines = append(lines, fmt.Sprintf("%x %d %d %d %d", agent, d.SubAgent, d.Seq, d.Uptime, d.Samples))
	for rd.Next(&s) {
		line := fmt.Sprintf("sample %d", s.Tag&0xfff)
		switch {
		case s.Kind == sflow.Flow && s.Expanded:
			line += fmt.Sprintf(" %d %d %d %d %d %d %d %d %d %d", s.Seq, s.Class, s.Index, s.Rate, s.Pool, s.Drops, s.Input.Format, s.Input.Value, s.Output.Format, s.Output.Value)
		case s.Kind == sflow.Flow:
			line += fmt.Sprintf(" %d %d %d %d %d %d %d %d %d", s.Seq, s.Class, s.Index, s.Rate, s.Pool, s.Drops, s.Input.Value, s.Output.Format, s.Output.Value)
		case s.Kind == sflow.Counters:
			line += fmt.Sprintf(" %d %d %d", s.Seq, s.Class, s.Index)
		}
		if s.Kind == sflow.Flow && s.Has&sflow.HasHeader != 0 {
			end := s.HeaderAt + (len(s.Header)+3)/4*4
			line += fmt.Sprintf(" %d %d %d %d %x", s.Protocol, s.FrameLen, s.Stripped, len(s.Header), b[s.HeaderAt:end])
		}
		if s.Kind == sflow.Flow && s.Has&sflow.HasSwitch != 0 {
			line += fmt.Sprintf(" %d %d %d %d", s.InVLAN, s.InPriority, s.OutVLAN, s.OutPriority)
		}
		if i := &s.Interface; s.Kind == sflow.Counters && s.Has&sflow.HasInterface != 0 {
			line += fmt.Sprint(" ", i.Index, i.Type, i.Speed, i.Direction, i.InOctets, i.InUnicast, i.InMulticast, i.InBroadcast, i.InDiscards, i.InErrors, i.InUnknown, i.OutOctets, i.OutUnicast,
				i.OutMulticast, i.OutBroadcast, i.OutDiscards, i.OutErrors, i.Promiscuous)
		}
		lines = append(lines, line)
	}
	return lines
}

// Both have the same results for the parts that tshark 4.0 decodes. It skips discarded packets and the record 1005.
// Behind one of the records 1036 to 1043 it loses its place. It does not skip unknown records by their length (sFlow 5,
// section 5). So flow samples have none here.
func TestSFlowAgainstTshark(t *testing.T) {
	rnd := rand.New(rand.NewPCG(28, 41))
	var messages [][]byte
	for range 10_000 {
		d := sflow.Datagram{SubAgent: rnd.Uint32N(4), Seq: rnd.Uint32(), Uptime: rnd.Uint32(), Samples: 1 + rnd.Uint32N(8), IPv: uint8(4 + 2*rnd.IntN(2))}
		binary.BigEndian.PutUint64(d.Agent[8:], rnd.Uint64())
		b := sflow.AppendDatagram(nil, &d)
		for range d.Samples {
			s := RandomSFlowSample(rnd)
			s.Header = s.Header[:rnd.IntN(len(s.Header)+1)]
			if s.Kind != sflow.Discard {
				s.Has &= sflow.HasHeader | sflow.HasSwitch | sflow.HasInterface | sflow.HasPortName
			}
			b = sflow.AppendSample(b, &s)
		}
		messages = append(messages, b)
	}
	for _, file := range recordings("../../decode/sflow/testdata/sflow_[em]*.pcap", "SFLOW_RECORDINGS") {
		for _, b := range Payloads(t, file) {
			if len(b) > 3 && b[3] == 5 { // there is one of NetFlow 5, too
				messages = append(messages, b)
			}
		}
	}
	samples := 0
	tshark(t, "sflow", 6343, messages, func(i int, list []node) {
		got, want := sflowAsTshark(messages[i]), sflowOfTshark(list)
		if !slices.Equal(got, want) {
			t.Fatalf("%x:\n%s\nwant\n%s", messages[i], strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		samples += len(got) - 1
	})
	t.Logf("%d datagrams, %d samples", len(messages), samples)
}
