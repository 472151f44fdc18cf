// Offers devices that do not exist: device-plugin FOLDER RESOURCE COUNT.
//
// A container that was given GPU-3 has NVIDIA_VISIBLE_DEVICES=GPU-3 and a file /dev/nvidia3, which
// is the node's /dev/null.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		given := &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		}
		for _, id := range container.DevicesIds {
			given.Devices = append(given.Devices, &api.DeviceSpec{
				ContainerPath: "/dev/nvidia" + strings.TrimPrefix(id, "GPU-"),
				HostPath:      "/dev/null",
				Permissions:   "rw",
			})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

func main() {
	folder, resource := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	offered := &plugin{}
	for i := range count {
		offered.devices = append(offered.devices, &api.Device{ID: fmt.Sprintf("GPU-%d", i), Health: api.Healthy})
	}
	for {
		if err := serve(offered, folder, resource); err != nil {
			log.Print(err)
		}
		time.Sleep(time.Second)
	}
}

// serve registers; it returns when the kubelet has removed our socket, as it does at each start.
func serve(offered *plugin, folder, resource string) error {
	name := strings.ReplaceAll(resource, "/", "-") + ".sock"
	path := filepath.Join(folder, name)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, offered)
	go server.Serve(listener)
	defer server.Stop()
	if err := register(filepath.Join(folder, "kubelet.sock"), name, resource); err != nil {
		return err
	}
	log.Printf("registered %s", resource)
	for {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func register(kubelet, endpoint, resource string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: resource,
	})
	return err
}
