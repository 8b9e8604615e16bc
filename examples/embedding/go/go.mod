module example.org/confined

go 1.19
