module peers/kubernetes-oldest

go 1.21

require k8s.io/client-go v0.25.16
