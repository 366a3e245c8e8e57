package protocol

import (
	"time"

	"github.com/tandem-tune/tandem/trial"
)

// DatasetRequest makes an artifact that the caller has uploaded one of its data sets.
type DatasetRequest struct {
	Name     string `json:"name" minLength:"1" maxLength:"40" pattern:"^[a-z][a-z0-9_]*$" doc:"the name that it was encrypted with"`
	Artifact string `json:"artifact" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the encrypted file, which you have sent before"`
}

// UploadLink is where an artifact can be sent instead of to the server.
type UploadLink struct {
	Link    string            `json:"link" format:"uri" doc:"where to PUT the bytes, without the token, within 15 minutes"`
	Headers map[string]string `json:"headers" doc:"headers that belong to the request"`
}

// Dataset is an encrypted data set. Studies name it by its name and SHA-256.
type Dataset struct {
	DatasetRequest
	Bytes     int64     `json:"bytes" minimum:"0"`
	Owner     string    `json:"owner" doc:"whose studies may use it; admin: the administrators'"`
	Published time.Time `json:"published"`
}

// ArtifactLog keeps an uploaded artifact under a name as a file of the trial.
type ArtifactLog struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" minimum:"1"`
	Name       string           `json:"name" minLength:"1" maxLength:"100" doc:"it replaces the trial's file of that name"`
	Artifact   string           `json:"artifact" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the uploaded bytes"`
	Bytes      int64            `json:"bytes" minimum:"0"`
}
