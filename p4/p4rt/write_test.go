package p4rt

import (
	"strings"
	"testing"
	"unicode/utf8"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/internal/p4rttest"
)

// Whatever a switch says to a write that failed: some update is not taken for done, and each has a word.
func FuzzRefused(f *testing.F) {
	c := &Client{cfg: Config{Pipeline: pipeline(f, "srint")}}
	none, what := &p4pb.Error{}, &p4pb.Error{CanonicalCode: int32(codes.ResourceExhausted), Space: "s", Code: 4, Message: "full"}
	for _, err := range []error{
		p4rttest.Status([]*p4pb.Error{none, what}), p4rttest.Status([]*p4pb.Error{what}), p4rttest.Status([]*p4pb.Error{none, none, none}),
		status.Error(codes.PermissionDenied, "Not primary"), status.Error(codes.Unavailable, ""), status.Error(codes.FailedPrecondition, ""), withBroken(nil),
	} {
		s, _ := status.FromError(err)
		b, err := proto.Marshal(s.Proto())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(2))
		f.Add(b, uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		var s statuspb.Status
		if proto.Unmarshal(b, &s) != nil || s.GetCode() == 0 || n == 0 {
			return
		}
		errs, err := c.refused(status.ErrorProto(&s), int(n))
		failed := false
		for _, e := range errs {
			failed = failed || e != nil
			if e != nil && len(e.Error()) > 1000 {
				t.Errorf("%d bytes", len(e.Error()))
			}
		}
		if len(errs) != int(n) || !failed {
			t.Errorf("%v, %v", errs, err)
		}
	})
}

// What a switch says is not cut within a character.
func TestCut(t *testing.T) {
	for pad := range 4 {
		text := strings.Repeat("x", pad) + strings.Repeat("漢", 400)
		if got, ok := strings.CutSuffix(cut(text), "..."); !ok || !utf8.ValidString(got) || !strings.HasPrefix(text, got) || len(got) < 298 {
			t.Errorf("with %d bytes before: %q", pad, got)
		}
	}
}
