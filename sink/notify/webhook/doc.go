// Package webhook delivers alerts to a server that takes a document by POST, such as a chat, a pager or a script of one's own.
//
// There is one request for each alert, since that is what nearly all such servers take. Its body is the alert as JSON, as
// [notify.Alert] has it, or what a template makes of it. Every answer 2xx means that the alert is there; [remote.Client] states
// what other answers mean. An alert whose answer was lost is sent again, so a receiver may see one twice, with the same key,
// status and time.
package webhook
