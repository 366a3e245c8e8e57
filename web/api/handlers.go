package api

// The handlers, by what they are about. Each sees the whole server.
type (
	studyAPI     struct{ *server } // studies
	trialAPI     struct{ *server } // trials
	analysisAPI  struct{ *server } // analyses and charts
	workerAPI    struct{ *server } // workers and their leases
	sharingAPI   struct{ *server } // quotas, reservations and drains
	knowledgeAPI struct{ *server } // ground truth and architectures
	accessAPI    struct{ *server } // tokens, sessions and links
	artifactAPI  struct{ *server } // artifacts
	forecastAPI  struct{ *server } // forecasts
	healthAPI    struct{ *server } // health, metrics and the document
)
