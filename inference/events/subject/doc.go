// Package subject holds the common parts of all detectors of package events. They are a [Table] of the subjects of
// each, the [Journal] of their findings, their settings, and the [Coder] of their states.
package subject
