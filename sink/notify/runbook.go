package notify

import "github.com/hopscope/hopscope/inference"

// RunbookPath is the path of docs/findings.md on the page of a collector.
const RunbookPath = "/docs/findings"

// Runbook returns the address of the section about a kind on the page that base names. An empty base is [RunbookPath],
// relative to the page of a collector.
func Runbook(base string, k inference.Kind) string {
	if base == "" {
		base = RunbookPath
	}
	return base + "#" + k.String()
}
