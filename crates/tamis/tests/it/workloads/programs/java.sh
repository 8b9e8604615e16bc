# java compiles and runs a program with threads, a child process, and a server on TCP where the setting has it.
cat >Tiny.java <<'P'
import java.net.*;
import java.util.stream.*;
public class Tiny {
    public static void main(String[] args) throws Exception {
        System.out.println(IntStream.range(0, 1000).parallel().sum());
        System.out.println(new ProcessBuilder("sh", "-c", "exit 5").start().waitFor());
        if (!args[0].equals("proxy") && !args[0].equals("full")) return;
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            Thread peer = new Thread(() -> {
                try (Socket socket = server.accept()) { socket.getOutputStream().write("served".getBytes()); }
                catch (Exception error) { System.out.println(error); }
            });
            peer.start();
            try (Socket socket = new Socket("127.0.0.1", server.getLocalPort())) {
                System.out.println(new String(socket.getInputStream().readAllBytes()));
            }
            peer.join();
        }
    }
}
P
java -version 2>&1; echo $?
java Tiny.java "$1"; echo $?
