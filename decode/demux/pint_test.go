package demux

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// pintPacket is an IPv4 packet as a PINT program leaves it: id 7, TTL 250, TOS 1, the last writer in the checksum.
func pintPacket() []byte {
	b := ipv4(0, 17, udp(53, []byte{0, 0, 0, 0, 0, 0, 0x7a, 0x05}))
	b[1], b[4], b[5], b[8], b[10], b[11] = 1, 0, 7, 250, 0, 2
	return b
}

func pintCases(t testing.TB) []frameCase {
	const flow = `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":33000,"dst_port":53},"packet_id":7`
	const digest = `{"format":"pint","kind":"digest",` + flow
	with := func(change func(b []byte)) []byte {
		b := append(join(t, "009d00050000", "000000000009", "0800"), pintPacket()...)
		change(b)
		return b
	}
	mininet, tofino, hpcc := profile(t, "pint-mininet"), profile(t, "pint-tofino"), profile(t, "pint-hpcc")
	wide := hpcc
	wide.Formats = formats(pint.Frames{Coding: decode.CodingHPCC, Bytes: 2})
	tofinoFrame := append(join(t, macs, "1337", "d7a5bf450800"), pintPacket()...)
	ppp := append([]byte{0, 0x21}, pintPacket()...)
	return []frameCase{
		{"Mininet", mininet, 1, with(func([]byte) {}), digest + `,"digest":"0x009d00050000","ams_digest":"0x0009","ttl":250,"last_writer":2}` + "\n"},
		{"Mininet, another TOS", mininet, 1, with(func(b []byte) { b[15] = 0 }), ""},
		{"Mininet, no switch", mininet, 1, with(func(b []byte) { b[22] = 255 }),
			digest + `,"error":{"format":"pint","field":"ttl","offset":22,"reason":"bad-digest"}}` + "\n"},
		{"Mininet, bits outside of the lanes", mininet, 1, with(func(b []byte) { b[3] = 0x10 }),
			digest + `,"error":{"format":"pint","field":"digest","offset":0,"reason":"bad-digest"}}` + "\n"},
		{"Mininet, cut before IP", mininet, 1, with(func([]byte) {})[:30], ""},
		{"Tofino", tofino, 1, tofinoFrame, digest + `,"digest":"0xd7a5bf45","ttl":250}` + "\n"},
		{"Tofino, another EtherType", tofino, 1, with(func([]byte) {}), ""},
		{"Tofino, header twice", tofino, 1, append(join(t, macs, "1337", "d7a5bf451337"), pintPacket()...),
			`{"format":"pint","error":{"format":"pint","field":"next_header","offset":18,"reason":"bad-type"}}` + "\n"},
		{"Tofino, cut in the header", tofino, 1, tofinoFrame[:17],
			`{"format":"pint","error":{"format":"pint","field":"digest","offset":14,"reason":"short"}}` + "\n"},
		{"Tofino, cut in IP", tofino, 1, tofinoFrame[:30],
			`{"format":"pint","error":{"format":"pint","field":"next_header","offset":20,"reason":"short"}}` + "\n"},
		{"HPCC, 8 bits", hpcc, packet.LinkPPP, ppp, digest + `,"digest":"0x007a"}` + "\n"},
		{"HPCC, 11 bits", wide, packet.LinkPPP, ppp, digest + `,"digest":"0x057a"}` + "\n"},
		{"HPCC, cut before the digest", hpcc, packet.LinkPPP, ppp[:36], digest + `,"flags":["truncated"]}` + "\n"},
		{"HPCC, no room for a digest", wide, packet.LinkPPP, append([]byte{0, 0x21}, ipv4(0, 17, udp(53, make([]byte, 7)))...), ""},
	}
}

func TestPINTFrames(t *testing.T) {
	for _, c := range pintCases(t) {
		var b decode.Batch
		n := New(c.profile).Frame(&b, c.link, c.data, pintLength(c.data), 7)
		if got := lines(&b); got != c.want || n != len(b.Reports) {
			t.Errorf("%s: %d reports\n got %s\nwant %s", c.name, n, got, c.want)
		}
		b.Reset()
		NewRouter(c.profile, nil).Frame(&b, c.link, c.data, pintLength(c.data), 7)
		if got := lines(&b); got != c.want {
			t.Errorf("%s, through a router:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// pintLength is the length on the wire: frames in these cases were cut by the capture.
func pintLength(b []byte) int { return max(len(b), 58) }

func TestPINTReport(t *testing.T) {
	report := func(ds uint16, domain uint16, words string) []byte {
		b := report20(0, 0, join(t, strings.Fields(words)...), pintPacket())
		be.PutUint16(b[14:], domain)
		be.PutUint16(b[16:], ds)
		return b
	}
	const head = `{"format":"telemetry-report","version":"2.0","exporter":"10.9.9.9","node_id":5,"hw_id":1,"seq":7,`
	const flow = `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":33000,"dst_port":53},"packet_id":7`
	const domain = `,"domain_id":20553`
	for _, c := range []struct {
		name    string
		payload []byte
		want    string
	}{
		{"32 bits", report(0xe000, telemetry.PINTDomain, "03050000 00010007 0000a55a"),
			head + `"kind":"digest",` + flow + domain + `,"plan_epoch":3,"digest_id":65543,"digest_hops":5,"digest":"0x000000000000a55a"}` + "\n"},
		{"64 bits", report(0xf000, telemetry.PINTDomain, "03050000 00010007 0000a55a 00000001"),
			head + `"kind":"digest",` + flow + domain + `,"plan_epoch":3,"digest_id":65543,"digest_hops":5,"digest":"0x000000010000a55a"}` + "\n"},
		{"a loop, and a word that nobody knows", report(0xe900, telemetry.PINTDomain, "03ff0000 00010007 0000a55a 02000000 12345678"),
			head + `"kind":"digest",` + flow + `,"flags":["loop"]` + domain + `,"plan_epoch":3,"digest_id":65543,"digest_hops":255,"digest":"0x000000000000a55a"}` + "\n"},
		{"another domain", report(0xe000, 77, "03050000 00010007 0000a55a"), head + `"kind":"postcard",` + flow + `,"domain_id":77,"unknown":"0x03050000000100070000a55a"}` + "\n"},
		{"no packet id", report(0xa000, telemetry.PINTDomain, "03050000 0000a55a"),
			head + `"error":{"format":"pint","field":"md_length","offset":10,"reason":"bad-width"}}` + "\n"},
		{"a word is missing", report(0xf000, telemetry.PINTDomain, "03050000 00010007 0000a55a"),
			head + `"error":{"format":"pint","field":"md_length","offset":10,"reason":"bad-width"}}` + "\n"},
	} {
		var b decode.Batch
		New(profile(t, "auto")).Datagram(&b, exporter, c.payload, 7)
		if got := lines(&b); got != c.want {
			t.Errorf("%s:\n got %swant %s", c.name, got, c.want)
		}
	}
}
