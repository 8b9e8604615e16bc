# asyncio with subprocesses, threads, processes, and a server on the sockets of the setting.
import asyncio, multiprocessing, os, socket, subprocess, sys, tempfile

network = sys.argv[1]

async def echo(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()

async def talk(reader, writer):
    writer.write(b"hello\n")
    print(await reader.read())
    writer.close()

async def main():
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", "cat; exit 3", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    print(await process.communicate(b"piped"), process.returncode)
    print(await asyncio.to_thread(os.getpid) == os.getpid())
    if network != "none":
        path = os.path.join(tempfile.mkdtemp(), "socket")
        async with await asyncio.start_unix_server(echo, path):
            await talk(*await asyncio.open_unix_connection(path))
    if network in ("proxy", "full"):
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            await talk(*await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1], family=socket.AF_INET))
    if network == "full":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind(("127.0.0.1", 0))
            one.sendto(b"datagram", one.getsockname())
            print(one.recv(100))

if __name__ == "__main__":
    asyncio.run(main())
    with multiprocessing.Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
