// Package findings measures detectors of changes on series whose truth is known. These are hops that are quiet in
// many ways, and faults that begin in a known window. Every detector sees the same windows.
//
// series are drawn from distributions, window by window, with the exact joint law of the quantiles that a hop's
// window keeps. Further effects of a real network, such as traffic that reacts to a fault, are in the emulated half.
package findings
