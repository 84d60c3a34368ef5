package api

import "net/http"

// Answered remembers the status of an answer; 200 if nothing else is written.
type Answered struct {
	http.ResponseWriter
	Status int
}

// StatusOf has the status of an answer remembered.
func StatusOf(w http.ResponseWriter) *Answered {
	return &Answered{ResponseWriter: w, Status: http.StatusOK}
}

// WriteHeader is http.ResponseWriter.
func (a *Answered) WriteHeader(status int) {
	a.Status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is what http.ResponseController looks for: streams are flushed.
func (a *Answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush is http.Flusher.
func (a *Answered) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }
