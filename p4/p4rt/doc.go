// Package p4rt writes the tables of switches and reads them back: over P4Runtime 1.4 to switches that serve it, or as plain JSON
// for programs that install entries by other means. Both are an [Installer], whose entries are those of package p4.
//
// [Client] is a controller of one switch. It takes part in the election of its primary, notices a pipeline that is not the
// one that it was made for, and connects again with increasing delays. All that a switch says is bounded and checked before
// it is believed; what it may not say is an answerError.
//
// [Reconcile] makes a switch hold what it should: it reads before it writes, keeps what is right, repairs what is not, and
// deletes the controller's own entries that are no longer wanted. It leaves the entries of others, and reads again to see that
// it came to be.
package p4rt
