// Package notify makes alerts of findings, and decides what is sent to operators, when, and how often. A [Center]
// takes the findings of every window and returns the alerts that follow from them. The packages below this one deliver
// alerts to receivers. Each is a [sink.Writer] behind a queue and a spool like any store. So an alert survives an
// unreachable receiver and the death of the process.
//
// # One alert for one cause
//
// A finding that names another one as its cause is evidence and makes no alert. The key of an alert is the kind of the
// finding and its element. A cause that ends and comes back is the same alert, as is one that the next run of the
// program finds under another id.
//
//	status     sent when
//	firing     a finding starts, or its severity rises, or a mute of it ends
//	repeated   it is still open after Repeat
//	open       with every window at most once a minute: for receivers that forget what is not sent again
//	resolved   all findings with its key have ended; only if it was sent as firing before
//	heartbeat  every Heartbeat, so that a receiver notices when nothing comes any more
//
// An alert that was open when the program ended is resolved unless it is found again within Forget of the next run.
//
// # Acknowledged, muted, in maintenance
//
// [Rules] are in a file that operators and programs edit, and that is read again when it changes. A muted alert is not
// sent until the mute ends; only the end of an alert that was sent before is. An acknowledged one is not repeated. The
// findings are stored and shown all the same.
package notify
