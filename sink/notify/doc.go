// Package notify makes alerts of findings: what is sent to operators, when, and how often. A [Center] takes the findings of
// every window and returns the alerts that follow from them; the packages below it deliver alerts to receivers, each as a
// [sink.Writer] behind a queue and a spool like any store. An alert survives a receiver that is away and a process that is
// killed.
//
// # One alert for one cause
//
// A finding that names another one as its cause is evidence and makes no alert. Alerts are known by their key: the kind
// of the finding and the element that it names. A cause that ends and comes back, or that the next run of the program
// finds again under another id, is the same alert.
//
//	status     sent when
//	firing     a finding starts, or its severity rises, or a mute of it ends
//	repeated   it is still open after Repeat
//	open       with every window at most once a minute: for receivers that forget what is not sent again
//	resolved   all findings with its key have ended; only if it was sent as firing before
//	heartbeat  every Heartbeat, so that a receiver notices when nothing comes any more
//
// An alert that was open when the program ended is resolved if it is not found again within Forget of the next run.
//
// # Acknowledged, muted, in maintenance
//
// [Rules] are in a file that operators and programs edit and that is read again when it changes. What is muted is not sent until
// the mute ends, but for the end of what was sent before; what is acknowledged is not repeated. Findings themselves are stored
// and shown all the same.
package notify
