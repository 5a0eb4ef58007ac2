package decode_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/hopscope/hopscope/"

// Decoders are functions of bytes: a seed and a capture replay a run bit for bit, on any machine, without a network.
func TestImports(t *testing.T) {
	forbidden := map[string]string{
		"net":                "decoders do no I/O (net/netip is fine)",
		"net/http":           "decoders do no I/O",
		"log":                "only cmd logs",
		"log/slog":           "only cmd logs",
		"math/rand":          "decoders draw no random numbers",
		"math/rand/v2":       "decoders draw no random numbers",
		"encoding/json":      "reportjson writes its own JSON; reflection costs more than decoding",
		"reflect":            "reflection costs more than decoding",
		"github.com/":        "decoders need the standard library alone",
		"golang.org/":        "decoders need the standard library alone",
		module + "ingest":    "bytes come in as arguments",
		module + "sketches":  "sketches take plain numbers, from inference",
		module + "inference": "inference reads reports, not the other way round",
		module + "sink":      "what is stored is no business of decoders",
		module + "planner":   "planner and decoders never meet",
		module + "p4":        "programs for switches read the formats, not the other way round",
		module + "cmd":       "nothing imports the program",
	}
	for line := range strings.Lines(list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		for _, dep := range fields[1:] {
			if rest, ours := strings.CutPrefix(dep, module+"decode"); ours {
				inner := strings.TrimPrefix(rest, "/")
				if why := border(strings.TrimPrefix(pkg, "decode/"), inner); why != "" {
					t.Errorf("%s imports %s: %s", pkg, dep, why)
				}
				continue
			}
			for bad, why := range forbidden {
				if dep == bad || strings.HasSuffix(bad, "/") && strings.HasPrefix(dep, bad) && !strings.HasPrefix(dep, module) ||
					strings.HasPrefix(bad, module) && strings.HasPrefix(dep, bad) {
					t.Errorf("%s imports %s: %s", pkg, dep, why)
				}
			}
		}
	}
	// Indirect imports are forbidden, too.
	for dep := range strings.Lines(list(t, "-deps", "./...")) {
		dep = strings.TrimSpace(dep)
		switch why := forbidden[dep]; {
		case dep == "net", dep == "net/http", dep == "log", dep == "log/slog", dep == "encoding/json":
			t.Errorf("decode depends on %s: %s", dep, why)
		}
	}
}

// border says why pkg must not import dep, both below decode; "" is decode itself.
func border(pkg, dep string) string {
	switch {
	case dep == "" || pkg == "demux":
		return ""
	case pkg == "guess" && (dep == "demux" || dep == "reportjson"):
		return "" // it tries profiles
	case pkg == "reportjson" && dep == "pint":
		return "" // it finds the hops that wrote into a digest
	case pkg == "dump" && (dep == "demux" || dep == "guess"):
		return "" // it writes what they read
	case pkg == "decode":
		return "the vocabulary knows no format"
	case dep == "packet":
		return "" // the layers below every format, and the blocks of several
	}
	return "only demux knows more than one format"
}

func list(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("go list %q: %v\n%s", args, err, out)
	}
	return string(out)
}
