// Package failpoint names the places at which the fault tests let a program
// break: before and after each commit, and before and after what others see.
//
// In a program as it is shipped, [Here] does nothing and costs nothing. Only a
// program that is built with the tag "failpoints" reads what shall happen from
// its environment:
//
//	TANDEM_FAILPOINTS='store.committed=panic@3' tandem serve ...
//
// lets the third pass of that place panic; error, sleep:2s and kill (SIGKILL to
// the process itself) are the other things that can happen. Each happens once: with TANDEM_FAILPOINTS_FIRED set to
// a path, a file of that name (and the point's) says that it has, also to the
// process that is started next.
package failpoint

// Point is a place.
type Point string

// The places, in the order in which a report passes them.
const (
	// AgentLeased is behind a lease, before its command is started.
	AgentLeased Point = "agent.leased"
	// AgentReporting is before a report is sent, AgentReported behind its answer.
	AgentReporting Point = "agent.reporting"
	AgentReported  Point = "agent.reported"
	// StudyDecided is behind a decision, before anything of it is handed to the
	// store; StudySubmitted behind that, before it shows in memory; StudyShown
	// while it is waited for; StudyDurable before the caller hears of it.
	StudyDecided   Point = "study.decided"
	StudySubmitted Point = "study.submitted"
	StudyShown     Point = "study.shown"
	StudyDurable   Point = "study.durable"
	// StoreCommitting is before a group's commit, StoreCommitted behind it.
	StoreCommitting Point = "store.committing"
	StoreCommitted  Point = "store.committed"
	// AgentPacked is between the packing of a checkpoint, which encrypts it, and its upload.
	AgentPacked Point = "agent.packed"
	// ArtifactReceived is behind the last byte of an upload, before it has its
	// name; ArtifactNamed behind that, before the name is durable.
	ArtifactReceived Point = "artifact.received"
	ArtifactNamed    Point = "artifact.named"
	// AgentUploaded is between a checkpoint's upload and its commit,
	// AgentCommitted behind that.
	AgentUploaded  Point = "agent.uploaded"
	AgentCommitted Point = "agent.committed"
	// AgentFinishing is before the end of a lease is sent, AgentFinished behind
	// its answer.
	AgentFinishing Point = "agent.finishing"
	AgentFinished  Point = "agent.finished"
	// BrokerTaken is behind the use of a challenge, BrokerWritten behind the durable
	// line of a release, BrokerSealed behind the key's box, before the answer.
	BrokerTaken   Point = "broker.taken"
	BrokerWritten Point = "broker.written"
	BrokerSealed  Point = "broker.sealed"
)

// Points are all places.
var Points = [...]Point{
	AgentLeased, AgentReporting, AgentReported, StudyDecided, StudySubmitted, StudyShown, StudyDurable, StoreCommitting, StoreCommitted,
	AgentPacked, ArtifactReceived, ArtifactNamed, AgentUploaded, AgentCommitted, AgentFinishing, AgentFinished,
	BrokerTaken, BrokerWritten, BrokerSealed,
}
