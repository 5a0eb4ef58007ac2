package ask

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// stateCell returns whether the baseline of a hop is known.
func stateCell(learning bool) string {
	if learning {
		return "learning"
	}
	return "-"
}

func plainCell(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", inference.RoundTo(*v, countDigits))
}

// countDigits is how many digits of a count the page keeps.
const countDigits = 7

// egressCell names the interface by which packets left a hop.
func egressCell(called *names.Names, node inference.HopName, egress string) string {
	id, err := strconv.ParseUint(egress, 10, 32)
	if err != nil {
		return egress
	}
	return called.HopEgress(inference.HopKey{Node: node.Node, EgressIf: uint32(id), Other: node.Other})
}

// metricCell writes a value of a metric in its unit.
func metricCell(metric string, v *float64) string {
	switch {
	case strings.HasPrefix(metric, "latency"):
		return nsCell(v)
	case metric == "count":
		return plainCell(v)
	case v == nil:
		return "-"
	case strings.HasPrefix(metric, "tx_utilization"):
		return inference.Percent(*v, 3)
	}
	return bytesCell(v)
}

// bytesCell writes a quantile of a queue.
func bytesCell(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", inference.Round(*v))
}

// nsWithinCell is nsCell with the relative error, if it is known.
func nsWithinCell(v, share *float64) string {
	if v == nil || share == nil {
		return nsCell(v)
	}
	return inference.NanosecondsWithin(*v, *share)
}

func nsCell(v *float64) string {
	if v == nil {
		return "-"
	}
	return inference.Nanoseconds(*v)
}
