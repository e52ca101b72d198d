module github.com/tracon-go/tracon

go 1.26.5

require (
	golang.org/x/mod v0.43.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)
