// Package reroute finds flows that take another path than before, and learns from paths which node is behind which interface.
package reroute
