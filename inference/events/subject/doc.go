// Package subject holds what all detectors of package events rest on: a [Table] of the subjects of each, the [Journal] of their
// findings, their settings, and the [Coder] that writes and reads what they remember.
package subject
