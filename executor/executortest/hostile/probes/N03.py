import socket
families = {'INET': 2, 'AX25': 3, 'IPX': 4, 'INET6': 10, 'KEY': 15, 'NETLINK': 16, 'PACKET': 17, 'RDS': 21, 'PPPOX': 24, 'CAN': 29, 'TIPC': 30,
            'BLUETOOTH': 31, 'IUCV': 32, 'RXRPC': 33, 'PHONET': 35, 'IEEE802154': 36, 'CAIF': 37, 'ALG': 38, 'NFC': 39, 'VSOCK': 40, 'KCM': 41,
            'QIPCRTR': 42, 'SMC': 43, 'XDP': 44, 'MCTP': 45}
for n, f in families.items():
    def make():
        e = None
        for kind, protocol in ((1, 0), (2, 0), (3, 0), (5, 0), (3, 3)):
            try:
                return socket.socket(f, kind, protocol).close()
            except OSError as x:
                e = x
        raise e
    tell(n, make)
def raw():
    socket.socket(2, 3, 1).close()
tell('raw', raw)
tell('high bits', lambda: os.close(call(P['socket'], (1 << 32) | 16, 3, 0)))
