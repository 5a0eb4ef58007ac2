package ioam

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

const format = decode.IOAM

// DecodeOption reads one IOAM option into r, whose flow the caller has read from the headers before it.
//
// The option begins with its type in b[0], and has room bytes up to the end of its extension header. The slice b
// holds fewer if the capture was cut. Offsets of errors count from base, the place of b[0] in the frame. The values
// in r alias b.
func DecodeOption(r *decode.Report, b []byte, room, base int) {
	r.Format = format
	b = b[:min(len(b), max(room, 0))]
	if room < 2 {
		r.Fail(format, "opt_data_len", base+1, decode.Short)
		return
	}
	if len(b) < 2 {
		r.Flags |= decode.Truncated
		return
	}
	length := int(b[1])
	switch {
	case 2+length > room:
		r.Fail(format, "opt_data_len", base+1, decode.BadLength)
	case 2+length < optionLen:
		r.Fail(format, "opt_data_len", base+1, decode.Short)
	case len(b) < optionLen:
		r.Flags |= decode.Truncated
	default:
		body := b[optionLen:min(len(b), 2+length)]
		decodeBody(r, b[3], body, length-2, base+optionLen, base+1)
	}
}

// DecodeBody reads the bytes behind the type of an IOAM option, in any carrier. They are length bytes, of which body
// may hold less. Offsets of errors count from base, the place of body[0]; the carrier's own length is taken to be the
// byte before.
func DecodeBody(r *decode.Report, kind uint8, body []byte, length, base int) {
	r.Format = format
	decodeBody(r, kind, body[:min(len(body), max(length, 0))], length, base, base-1)
}

// decodeBody is DecodeBody with the place of the carrier's length.
func decodeBody(r *decode.Report, kind uint8, body []byte, length, base, lengthAt int) {
	least := shortLen
	switch kind {
	case TypeTrace, TypeIncremental, TypeDirectExport:
		least = traceLen
	case TypeProof, TypeEdge:
	default:
		// Types with integrity protection are unsupported, too: their content is behind a part whose size depends on
		// the method.
		r.Fail(format, "ioam_type", base-1, decode.Unsupported)
		return
	}
	if length < least {
		r.Fail(format, "opt_data_len", lengthAt, decode.Short)
		return
	}
	ok := true
	switch kind {
	case TypeProof:
		ok = proof(r, body, length, lengthAt)
	case TypeEdge:
		ok = edge(r, body, length, base, lengthAt)
	case TypeDirectExport:
		ok = export(r, body, length, lengthAt)
	default:
		trace(r, kind, body, length, base, lengthAt)
		return
	}
	if !ok {
		return
	}
	if len(body) >= 2 {
		namespace(r, body)
	}
	if len(body) < length {
		r.Flags |= decode.Truncated
	}
}

func namespace(r *decode.Report, body []byte) {
	x := &r.AddRare().IOAM
	x.Namespace = binary.BigEndian.Uint16(body)
	x.Has |= decode.IOAMNamespace
}

// traceType keeps the 24 bits that begin at byte 4 of a trace or a direct export.
func traceType(r *decode.Report, body []byte) {
	x := &r.AddRare().IOAM
	x.TraceType = binary.BigEndian.Uint32(body[3:]) & 0xffffff
	x.Has |= decode.IOAMTraceType
}

// proof reads a proof of transit: namespace 16, type 8, flags 8, and for type 0 two numbers of 64 bits.
func proof(r *decode.Report, b []byte, length, lengthAt int) bool {
	if len(b) >= 3 && b[2] == 0 && length < proofLen {
		r.Fail(format, "opt_data_len", lengthAt, decode.Short)
		return false
	}
	if len(b) < shortLen {
		return true
	}
	r.Kind = decode.KindProof
	if b[2] != 0 { // what another type holds is not known
		r.Unknown = b[shortLen:]
		return true
	}
	x := &r.AddRare().IOAM
	if len(b) >= shortLen+8 {
		x.ProofPacket = binary.BigEndian.Uint64(b[shortLen:])
		x.Has |= decode.IOAMProofPacket
	}
	if len(b) >= proofLen {
		x.ProofCumulative = binary.BigEndian.Uint64(b[shortLen+8:])
		x.Has |= decode.IOAMProofCumulative
	}
	return true
}

// edge reads an edge-to-edge option: namespace 16, type 16, and the values of the type's bits.
func edge(r *decode.Report, b []byte, length, base, lengthAt int) bool {
	if len(b) < shortLen {
		return true
	}
	be := binary.BigEndian
	kind := be.Uint16(b[2:])
	if kind&EdgeSeq64 != 0 && kind&EdgeSeq32 != 0 {
		r.Fail(format, "e2e_type", base+2, decode.BadType)
		return false
	}
	if length < shortLen+8*int(kind>>15)+4*bits.OnesCount16(kind&(EdgeSeq32|EdgeSeconds|EdgeFraction)) {
		r.Fail(format, "opt_data_len", lengthAt, decode.BadLength)
		return false
	}
	r.Kind = decode.KindEdge
	r.Instructions = kind
	r.Has |= decode.HasInstructions
	x, b := &r.AddRare().IOAM, b[shortLen:]
	if kind&EdgeSeq64 != 0 {
		if len(b) < 8 {
			return true
		}
		x.Seq, b = be.Uint64(b), b[8:]
		x.Has |= decode.IOAMSeq
	}
	for bit := uint16(EdgeSeq32); bit >= EdgeFraction && len(b) >= 4; bit >>= 1 {
		if kind&bit == 0 {
			continue
		}
		v := be.Uint32(b)
		b = b[4:]
		switch {
		case bit == EdgeSeq32:
			x.Seq = uint64(v)
			x.Has |= decode.IOAMSeq
		case v == 0xffffffff: // not populated
		case bit == EdgeSeconds:
			x.Seconds = v
			x.Has |= decode.IOAMSeconds
		default:
			x.Fraction = v
			x.Has |= decode.IOAMFraction
		}
	}
	return true
}

// export reads a direct export: namespace 16, flags 8, extension flags 8, trace type 24, reserved 8 bits. Each
// extension flag, known or not, adds 4 bytes.
func export(r *decode.Report, b []byte, length, lengthAt int) bool {
	if len(b) >= 4 && length < traceLen+4*bits.OnesCount8(b[3]) {
		r.Fail(format, "opt_data_len", lengthAt, decode.BadLength)
		return false
	}
	if len(b) >= 7 {
		traceType(r, b)
	}
	if len(b) < traceLen {
		return true
	}
	r.Kind = decode.KindExport
	flags, be := b[3], binary.BigEndian
	b = b[traceLen:]
	if flags&flowIDFlag != 0 && len(b) >= 4 {
		r.FlowID, b = be.Uint32(b), b[4:]
		r.Has |= decode.HasFlowID
		flags &^= flowIDFlag
	}
	if flags&(flowIDFlag|seqFlag) == seqFlag && len(b) >= 4 {
		x := &r.AddRare().IOAM
		x.Seq = uint64(be.Uint32(b))
		x.Has |= decode.IOAMSeq
	}
	return true
}
