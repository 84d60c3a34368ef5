package part

// In tests, somebody may say it.
