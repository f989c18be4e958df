module peers/go-sdk

go 1.25.0

require github.com/codefresh-io/go-sdk v1.4.15
